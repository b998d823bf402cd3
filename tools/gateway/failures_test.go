//go:build unix

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestKilledAndStopped: a call whose server ends or stops is lost, is not repeated, and the next
// one starts the server again. The second failure in sequence makes calls wait.
func TestKilledAndStopped(t *testing.T) {
	now := time.Now()
	g := open(t, "plain", func(_ *Server, o *Options) { o.Probe, o.Now = 50*time.Millisecond, func() time.Time { return now } })
	approve(t, g)
	if _, err := call(t, g, "die", ``); outcome(nil, err) != Lost || !strings.HasSuffix(err.Error(), "may have run: the server ended") {
		t.Errorf("a server that ends: %v", err)
	}
	first, err := call(t, g, "pid", ``)
	if err != nil {
		t.Fatalf("after the end: %v", err)
	}
	var pid int
	fmt.Sscan(first, &pid)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_, err = g.Call(t.Context(), Call{Server: "test", Tool: "echo", Arguments: []byte(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`), Timeout: 50 * time.Millisecond})
	if outcome(nil, err) != Lost || !strings.Contains(err.Error(), "time limit") {
		t.Errorf("a stopped server: %v", err)
	}
	for second := first; second == first; {
		if second, err = call(t, g, "pid", ``); err != nil {
			if outcome(nil, err) != Lost && outcome(nil, err) != Down {
				t.Fatal(err)
			}
			second = first
		}
	}
	for range 2 {
		_, _ = call(t, g, "die", ``)
		_, err = call(t, g, "die", ``)
	}
	if outcome(nil, err) != Down || !strings.Contains(err.Error(), "starts again in") {
		t.Errorf("a server that ends at every call: %v", err)
	}
	now = now.Add(time.Hour)
	if _, err := call(t, g, "pid", ``); err != nil {
		t.Errorf("after the wait: %v", err)
	}
}

// stop stops the process of the server, so that it answers no more, and returns its ID.
func stop(t *testing.T, g *Gateway) (pid string) {
	t.Helper()
	pid, err := call(t, g, "pid", ``)
	var number int
	if _, scanErr := fmt.Sscan(pid, &number); err != nil || scanErr != nil {
		t.Fatal(err, scanErr)
	}
	if err := syscall.Kill(number, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus // the signal takes effect later on a busy machine
	if _, err := syscall.Wait4(number, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatal(status, err)
	}
	return pid
}

// TestStoppedWhileListing: a server that stops before it lists its tools is replaced.
func TestStoppedWhileListing(t *testing.T) {
	g := open(t, "plain", func(_ *Server, o *Options) { o.Timeout = 100 * time.Millisecond })
	approve(t, g)
	first := stop(t, g)
	for _, l := range g.live {
		l.mu.Lock()
		l.listed = time.Time{}
		l.mu.Unlock()
	}
	if _, err := call(t, g, "pid", ``); outcome(nil, err) != Down {
		t.Errorf("a stopped server: %v", err)
	}
	g.o.Timeout = time.Minute
	if second, err := call(t, g, "pid", ``); err != nil || second == first {
		t.Errorf("afterwards: %q, %v, want another process than %s", second, err, first)
	}
}

// TestUnreadableResult: content of an unknown type is text. A result that cannot be read fails its
// call, and the server stays.
func TestUnreadableResult(t *testing.T) {
	g := open(t, "plain", nil)
	approve(t, g)
	first, err := call(t, g, "pid", ``)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := call(t, g, "hologram", ``); err != nil || got != `{"type":"hologram","light":1}` {
		t.Errorf("content of an unknown type is %q, %v, want it as text", got, err)
	}
	if _, err := call(t, g, "number", ``); outcome(nil, err) != Lost {
		t.Errorf("error %v, want a lost result", err)
	}
	if got := reason(&json.UnmarshalTypeError{Value: "string", Struct: "mcp.res"}).Error(); strings.Contains(got, "mcp") {
		t.Errorf("the error has a type of Go: %s", got)
	}
	if second, err := call(t, g, "pid", ``); err != nil || second != first {
		t.Errorf("afterwards: process %s, %v, want %s", second, err, first)
	}
}

// TestDefinitionsEnd: a server that stops before it lists its tools does not hang the caller.
func TestDefinitionsEnd(t *testing.T) {
	g := open(t, "plain", func(_ *Server, o *Options) { o.Timeout = 100 * time.Millisecond })
	approve(t, g)
	stop(t, g)
	server, err := g.store.Server("test")
	if err == nil {
		_, err = g.Definitions(t.Context(), server)
	}
	if err == nil || !strings.Contains(err.Error(), "took longer than 100ms to list its tools") {
		t.Errorf("error %v, want the time limit", err)
	}
}

func TestServerThatDoesNotStart(t *testing.T) {
	g := open(t, "breaks", nil)
	if _, err := call(t, g, "echo", ``); outcome(nil, err) != Down || !strings.Contains(err.Error(), "the server starts") {
		t.Errorf("error %v, want the server's own words", err)
	}
	if err := g.Store().Change(func(all map[string]Server) error {
		all["test"] = Server{Name: "test", Command: []string{"x"}, Env: []string{"NO_SUCH_VARIABLE"}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, g, "echo", ``); !strings.Contains(fmt.Sprint(err), "NO_SUCH_VARIABLE") {
		t.Errorf("a missing variable: %v", err)
	}
}

// TestCancel: the server learns that the client no longer waits.
func TestCancel(t *testing.T) {
	g := open(t, "plain", nil)
	approve(t, g)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(lines(t)) == 0 {
		}
		cancel()
	}()
	if _, err := g.Call(ctx, Call{Server: "test", Tool: "wait"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for len(lines(t)) < 2 {
	}
}

func TestOversizedResult(t *testing.T) {
	g := open(t, "plain", nil)
	approve(t, g)
	if got, err := call(t, g, "repeat", `{"text":"0123456789","count":100000}`); err != nil || len(got) != 1_000_000 {
		t.Errorf("%d bytes, %v, want a million", len(got), err)
	}
	if got, err := call(t, g, "repeat", `{"text":"0123456789","count":2000000}`); outcome(nil, err) != Lost {
		t.Errorf("%d bytes, %v, want a failure", len(got), err)
	}
	if _, err := call(t, g, "pid", ``); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestEndlessResult: a server that writes without end costs bounded memory and log, and one
// failed call.
func TestEndlessResult(t *testing.T) {
	g := open(t, "plain", nil)
	approve(t, g)
	for name, c := range map[string]struct {
		tool, arguments string
		limit           time.Duration
	}{
		"one message":       {"endless", `{"text":"{"}`, time.Minute},
		"lines of noise":    {"endless", `{"text":"\nnoise "}`, 300 * time.Millisecond},
		"progress reports":  {"notify", `{"text":"busy","count":1000000000}`, 300 * time.Millisecond},
		"a line of nothing": {"endless", `{"text":" "}`, 300 * time.Millisecond},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var seen atomic.Int64
		_, err := g.Call(t.Context(), Call{Server: "test", Tool: c.tool, Arguments: []byte(c.arguments), Timeout: c.limit, Peer: Peer{Progress: func(mcp.ProgressNotificationParams) { seen.Add(1) }}})
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); outcome(nil, err) != Lost || grown > 64<<20 || seen.Load() > maxNotices {
			t.Errorf("%s: %v, the heap grew by %d bytes, %d reports", name, err, grown, seen.Load())
		}
		g.Close()
		g = New(g.Store(), g.o)
		t.Cleanup(g.Close)
		if _, err := call(t, g, "pid", ``); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
	err := filepath.WalkDir(g.Store().dir, func(path string, e os.DirEntry, err error) error {
		if info, infoErr := e.Info(); err == nil && infoErr == nil && info.Size() > 2*maxLog {
			t.Errorf("%s has %d bytes", path, info.Size())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestEndlessHTTP: an answer over HTTP without end fails.
func TestEndlessHTTP(t *testing.T) {
	sdk := testServer("plain")
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.Body = io.NopCloser(bytes.NewReader(body)); err != nil || !bytes.Contains(body, []byte(`"tools/call"`)) {
			handler.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for err == nil {
			_, err = io.WriteString(w, "data: "+strings.Repeat("x", 64<<10)+"\n")
		}
	}))
	t.Cleanup(s.Close)
	g := open(t, "", func(server *Server, _ *Options) { *server = Server{Name: "test", URL: s.URL} })
	t.Cleanup(g.Close)
	approve(t, g)
	if got, err := call(t, g, "echo", `{"text":"hi"}`); outcome(nil, err) != Lost && !strings.Contains(fmt.Sprint(err), "MiB") {
		t.Errorf("%.100q, %v", got, err)
	}
}

// TestFloods: messages and questions of a server are bounded per call.
func TestFloods(t *testing.T) {
	g := open(t, "plain", nil)
	approve(t, g)
	var seen atomic.Int64
	_, err := g.Call(t.Context(), Call{Server: "test", Tool: "notify", Arguments: []byte(`{"text":"busy","count":3000}`), Peer: Peer{Progress: func(mcp.ProgressNotificationParams) { seen.Add(1) }}})
	if err != nil || seen.Load() == 0 || seen.Load() > maxNotices {
		t.Errorf("%d messages, %v, want 1 to %d", seen.Load(), err, maxNotices)
	}
	c := &running{peer: Peer{Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept"}, nil
	}}}
	l := &live{calls: map[string]*running{"1": c}, server: Server{Name: "test"}}
	accepted := 0
	for range 100 {
		if r, err := l.elicit(t.Context(), &mcp.ElicitRequest{Params: &mcp.ElicitParams{Message: "?"}}); err == nil && r.Action == "accept" {
			accepted++
		}
	}
	if accepted != maxQuestions {
		t.Errorf("%d questions reach the user, want %d", accepted, maxQuestions)
	}
	l.calls["2"] = &running{peer: c.peer}
	if r, _ := l.elicit(t.Context(), &mcp.ElicitRequest{Params: &mcp.ElicitParams{}}); r.Action != "decline" {
		t.Error("a question that belongs to no known call is accepted")
	}
}

func TestIdleServerEnds(t *testing.T) {
	g := open(t, "plain", nil)
	approve(t, g)
	g.o.Idle = time.Millisecond
	if _, err := call(t, g, "pid", ``); err != nil {
		t.Fatal(err)
	}
	for ended := false; !ended; {
		g.mu.Lock()
		for _, l := range g.live {
			l.mu.Lock()
			ended = l.session == nil
			l.mu.Unlock()
		}
		g.mu.Unlock()
	}
	g.o.Idle = time.Hour
	if _, err := call(t, g, "pid", ``); err != nil {
		t.Errorf("after the idle time: %v", err)
	}
}

// TestNoCallIsLostOrDoubled: 8 clients call at once, while the server is killed again and again.
// Every call that is answered ran exactly once; every other is reported, and ran at most once.
func TestNoCallIsLostOrDoubled(t *testing.T) {
	var clock atomic.Int64
	g := open(t, "plain", func(_ *Server, o *Options) {
		o.Now = func() time.Time { return time.Unix(clock.Add(1), 0) }
		o.Timeout = 20 * time.Second
	})
	approve(t, g)
	const clients, each = 8, 25
	answered := sync.Map{}
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d-%d", c, i)
				if i%10 == 9 {
					_, _ = g.Call(t.Context(), Call{Server: "test", Tool: "die"})
				}
				r, err := g.Call(t.Context(), Call{Server: "test", Tool: "echo", Arguments: []byte(`{"text":"` + id + `"}`)})
				if err == nil && textOf(r) == id {
					answered.Store(id, true)
				} else if err == nil {
					t.Errorf("call %s was answered with %q", id, textOf(r))
				}
			}
		})
	}
	wg.Wait()
	times := map[string]int{}
	for _, id := range lines(t) {
		times[id]++
	}
	n := 0
	answered.Range(func(id, _ any) bool {
		n++
		if times[id.(string)] != 1 {
			t.Errorf("answered call %v ran %d times", id, times[id.(string)])
		}
		return true
	})
	for id, k := range times {
		if k > 1 {
			t.Errorf("call %s ran %d times", id, k)
		}
	}
	if n < clients*each/2 {
		t.Errorf("%d of %d calls were answered", n, clients*each)
	}
}

// TestRefusedHTTP: a server that has forgotten the session, or does not take a request, fails one
// call, in words.
func TestRefusedHTTP(t *testing.T) {
	sdk := testServer("plain")
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, nil)
	var forgotten, busy atomic.Value
	forgotten.Store("none")
	busy.Store(false)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session := r.Header.Get("Mcp-Session-Id")
		switch {
		case r.Method == http.MethodGet:
			http.Error(w, "no stream", http.StatusMethodNotAllowed)
		case session == forgotten.Load() || session != "" && forgotten.CompareAndSwap("next", session):
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32001,"message":"Session not found"}}`)
		case busy.Load().(bool):
			http.Error(w, "later", http.StatusServiceUnavailable)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	g := open(t, "", func(server *Server, _ *Options) { *server = Server{Name: "test", URL: s.URL} })
	t.Cleanup(g.Close)
	approve(t, g)
	if got, err := call(t, g, "echo", `{"text":"hi"}`); err != nil || got != "hi" {
		t.Fatalf("%q, %v", got, err)
	}
	forgotten.Store("next")
	if got, err := call(t, g, "echo", `{"text":"hi"}`); err == nil || outcome(nil, err) != Down || !strings.Contains(err.Error(), "Session not found") {
		t.Errorf("a forgotten session: %q, %v", got, err)
	}
	if got, err := call(t, g, "echo", `{"text":"hi"}`); err != nil || got != "hi" {
		t.Errorf("the next call: %q, %v, want one in a new session", got, err)
	}
	busy.Store(true)
	if got, err := call(t, g, "echo", `{"text":"hi"}`); err == nil || outcome(nil, err) != Lost || !strings.HasSuffix(err.Error(), "Service Unavailable") || strings.Contains(err.Error(), "transport") {
		t.Errorf("a busy server: %q, %v", got, err)
	}
	busy.Store(false)
	if got, err := call(t, g, "refuse", ``); err != nil || !strings.HasPrefix(got, "refused") {
		t.Errorf("an error of a tool: %q, %v", got, err)
	}
}
