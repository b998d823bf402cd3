package qdrant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cairn/internal/store"
	"cairn/internal/store/qdrant/qdranttest"
)

var background = context.Background()

var names atomic.Int64

// dial connects to addr, for a collection that no other test has and that is
// removed at the end.
func dial(t testing.TB, addr string, o *Options) *Client {
	t.Helper()
	return dialTo(t, addr, newName(), o)
}

func newName() string { return fmt.Sprintf("cairn-test-%d-%d", os.Getpid(), names.Add(1)) }

func dialTo(t testing.TB, addr, collection string, o *Options) *Client {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(Target{Host: host, Port: n, Collection: collection}, o)
	if err != nil {
		t.Fatal(err)
	}
	c.Create()
	t.Cleanup(func() {
		if c.breaker.err() == nil && os.Getenv("QDRANT_ADDR") == addr {
			c.removeAll(background)
		}
		c.Close()
	})
	return c
}

// removeAll deletes every collection of the store.
func (c *Client) removeAll(ctx context.Context) {
	all, _ := c.aliases(ctx)
	for alias, name := range all {
		if alias == c.target.Collection || strings.HasPrefix(alias, c.target.Collection+"-") {
			_ = c.drop(ctx, name)
		}
	}
	_ = c.drop(ctx, c.target.Collection+"-records")
}

// servers runs a test on the fake, in each way the engine is known to behave,
// and on a real server where QDRANT_ADDR names one.
func servers(t *testing.T, test func(t *testing.T, addr string)) {
	for name, o := range map[string]*qdranttest.Options{
		"Fake": nil, "FakeUnquantised": {Unquantised: true},
	} {
		t.Run(name, func(t *testing.T) { test(t, qdranttest.New(t, o).Addr()) })
	}
	t.Run("Real", func(t *testing.T) { test(t, realServer(t)) })
}

// realServer is the address of a server to test against.
func realServer(t *testing.T) string {
	t.Helper()
	addr := os.Getenv("QDRANT_ADDR")
	if addr == "" {
		t.Skip("QDRANT_ADDR is not set: no real Qdrant to test against")
	}
	return addr
}

func TestMismatchNamesBoth(t *testing.T) {
	servers(t, func(t *testing.T, addr string) {
		c := dial(t, addr, nil)
		if _, err := c.Current().Chunks(3, "small@1").Vectors().Search(background, []float32{1, 0, 0}, 1, store.Filter{}); err != nil {
			t.Fatal(err)
		}
		for _, other := range []struct {
			dim   int
			model string
		}{{4, "small@1"}, {3, "large@2"}} {
			query := make([]float32, other.dim)
			query[0] = 1
			_, err := c.Current().Chunks(other.dim, other.model).Vectors().Search(background, query, 1, store.Filter{})
			if err == nil {
				t.Fatalf("%d, %s: no error", other.dim, other.model)
			}
			for _, want := range []string{"small@1", "dimension 3", other.model, fmt.Sprintf("dimension %d", other.dim)} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		}
	})
}

// TestRESTPort uses the address of an HTTP server, like port 6333 of Qdrant.
func TestRESTPort(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	c := dial(t, strings.TrimPrefix(s.URL, "http://"), nil)
	err := c.check(background)
	if err == nil || !strings.Contains(err.Error(), "does not speak gRPC") || !strings.Contains(err.Error(), "6334") || !strings.Contains(err.Error(), "6333") {
		t.Errorf("an HTTP server: %v, want an error that names both ports", err)
	}
}

// TestRESTPortByNumber has nothing at the port, but the port tells.
func TestRESTPortByNumber(t *testing.T) {
	c, err := Dial(Target{Host: "127.0.0.1", Port: 1, Collection: "x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.target.Port = restPort
	err = c.check(background)
	if !strings.Contains(fmt.Sprint(err), "gRPC port is 6334") {
		t.Errorf("port 6333 without an answer: %v, want the right port in it", err)
	}
}

func TestKeyAndVersion(t *testing.T) {
	locked := qdranttest.New(t, &qdranttest.Options{APIKey: "secret"})
	if err := dial(t, locked.Addr(), &Options{APIKey: "secret"}).check(background); err != nil {
		t.Errorf("with the key: %v", err)
	}
	for _, key := range []string{"", "wrong-key"} {
		err := dial(t, locked.Addr(), &Options{APIKey: key}).check(background)
		if err == nil || !strings.Contains(err.Error(), "refuses access") {
			t.Errorf("key %q: %v, want that access is refused", key, err)
		}
		if key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("%q holds the key", err)
		}
	}
	old := qdranttest.New(t, &qdranttest.Options{Version: "1.15.4"})
	_, err := dial(t, old.Addr(), nil).Current().Chunks(2, "m").Vectors().Vectors(background, []string{"a#b.0"})
	if err == nil || !strings.Contains(err.Error(), "version 1.15.4, want 1.16") {
		t.Errorf("an old server: %v, want both versions", err)
	}
}

func TestRetriesTransientCodesOnly(t *testing.T) {
	for _, c := range []struct {
		code  codes.Code
		fails int32 // calls that fail before one succeeds
		want  bool  // it works in the end
		calls int32
	}{
		{codes.Unavailable, 1, true, 2},
		{codes.ResourceExhausted, 1, true, 2},
		{codes.Unavailable, 9, false, readAttempts},
		{codes.InvalidArgument, 1, false, 1},
		{codes.Internal, 1, false, 1},
		{codes.PermissionDenied, 1, false, 1},
	} {
		var calls atomic.Int32
		s := qdranttest.New(t, &qdranttest.Options{Fault: func(context.Context, string) error {
			if calls.Add(1) <= c.fails {
				return status.Error(c.code, "fault")
			}
			return nil
		}})
		err := dial(t, s.Addr(), nil).check(background)
		if (err == nil) != c.want || calls.Load() != c.calls {
			t.Errorf("%v %d times: %v after %d calls, want success %v after %d", c.code, c.fails, err, calls.Load(), c.want, c.calls)
		}
	}
}

// TestLimitOfRequests has a server that refuses requests for some time.
func TestLimitOfRequests(t *testing.T) {
	s := qdranttest.New(t, &qdranttest.Options{Fault: func(context.Context, string) error {
		return status.Error(codes.ResourceExhausted, "Read rate limit exceeded")
	}})
	err := dial(t, s.Addr(), nil).check(background)
	if _, ok := errors.AsType[*UnavailableError](err); !ok || strings.Contains(err.Error(), "does not answer") || !strings.Contains(err.Error(), "limits") {
		t.Errorf("with a limit of requests: %v, want an error that names it", err)
	}
}

// TestPassTakesLonger has a server that answers calls about a whole collection after more time
// than searches have.
func TestPassTakesLonger(t *testing.T) {
	s := qdranttest.New(t, &qdranttest.Options{Fault: func(ctx context.Context, method string) error {
		if end, ok := ctx.Deadline(); ok && time.Until(end) < 5*time.Second && (strings.HasSuffix(method, "Points/Count") || strings.HasSuffix(method, "Points/Scroll")) {
			return status.Error(codes.DeadlineExceeded, "too short")
		}
		return nil
	}})
	chunks := dial(t, s.Addr(), nil).Current().Chunks(1, "m")
	if _, err := chunks.Keyword().Count(); err != nil {
		t.Error(err)
	}
	if err := chunks.IDs(background, func(string) {}); err != nil {
		t.Error(err)
	}
}

// TestOutage stops the server under a store and starts it again.
func TestOutage(t *testing.T) {
	s := qdranttest.New(t, nil)
	c := dial(t, s.Addr(), nil)
	v := c.Current().Chunks(2, "m").Vectors()
	if err := v.Update(background, []Chunk{{store.KeywordEntry{Chunk: "p#a.0", Path: "p"}, []float32{1, 0}}}, nil, 1); err != nil {
		t.Fatal(err)
	}
	search := func() error {
		hits, err := v.Search(background, []float32{1, 0}, 1, store.Filter{})
		if err == nil && len(hits) != 1 {
			return fmt.Errorf("%d hits without an error", len(hits))
		}
		return err
	}
	s.Stop()
	for range failuresToOpen {
		if _, ok := errors.AsType[*UnavailableError](search()); !ok {
			t.Fatalf("with the server away: %v, want an *UnavailableError", search())
		}
	}
	if c.breaker.err() == nil {
		t.Error("the client still takes the server for available")
	}
	calls := s.Calls()
	for range 100 {
		if _, ok := errors.AsType[*UnavailableError](search()); !ok {
			t.Fatal("a search worked without a server")
		}
	}
	if s.Calls() != calls {
		t.Error("calls reached a server that is stopped")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	c.tasks.Wait() // for the probe that finds it
	if err := search(); err != nil {
		t.Errorf("after the server's return: %v", err)
	}
}

func TestParseTarget(t *testing.T) {
	for in, want := range map[string]Target{
		"qdrant://localhost/docs":        {"localhost", 6334, "docs", false},
		"qdrant://10.0.0.1:7000/my-docs": {"10.0.0.1", 7000, "my-docs", false},
		"qdrants://[::1]:6334/a.b_c":     {"::1", 6334, "a.b_c", true},
	} {
		if got, err := ParseTarget(in); got != want || err != nil {
			t.Errorf("ParseTarget(%q) = %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "flat", "http://h/c", "qdrant://h", "qdrant://h/", "qdrant:///c", "qdrant://h/a/b", "qdrant://h/a?x=1", "qdrant://h/ü",
		"qdrant://h:0/c", "qdrant://h:x/c", "qdrant://h:99999/c", "qdrant://h/" + strings.Repeat("a", 201), "qdrant://%zz/c",
	} {
		if got, err := ParseTarget(in); err == nil {
			t.Errorf("ParseTarget(%q) = %+v, want an error", in, got)
		}
	}
	_, err := ParseTarget("qdrant://user:hunter2@h/c")
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("an address with a password: %v, want an error without it", err)
	}
}

func TestUnder(t *testing.T) {
	for _, c := range []struct {
		path, prefix string
	}{
		{"docs/auth.md", "docs/"}, {"docs/auth.md", "docs/au"}, {"docs/auth.md", "d"}, {"docs/authentication.md", "docs/authentica"},
		{"日本語/文書.md", "日本"}, {"a", "a"}, {"long/long/long/x.md", "long/long/l"}, {"docs/auth.md", "docs/auth.md"},
	} {
		number := underKey(c.prefix)
		if !slices.Contains(under(c.path), number) {
			t.Errorf("%q is not found under %q", c.path, c.prefix)
		}
		last := c.prefix[strings.LastIndexByte(c.prefix, '/')+1:]
		if want := len([]rune(last)) <= underRunes; (number == prefixNumber(c.prefix)) != want {
			t.Errorf("underKey(%q) is that of the whole prefix: %v, want %v", c.prefix, !want, want)
		}
	}
	for _, c := range [][2]string{{"docs/auth.md", "doc/"}, {"docs", "docs/"}, {"docs/auth.md", "auth"}, {"docs/auth.md", "docs/b"}} {
		if number := underKey(c[1]); slices.Contains(under(c[0]), number) {
			t.Errorf("%q is found under %q", c[0], c[1])
		}
	}
}

func TestPointIDIsStable(t *testing.T) {
	// Computed with Python's uuid.uuid5 in the same namespace.
	if got, want := pointID("docs/auth.md#login.0").GetUuid(), "4e3e4600-7ff0-52c0-a84a-83a7f94723fa"; got != want {
		t.Errorf("id of docs/auth.md#login.0: %s, want %s", got, want)
	}
}

// TestConnectionEnds connects with and without TLS to servers that end the connection.
func TestConnectionEnds(t *testing.T) {
	withTLS := httptest.NewUnstartedServer(http.NotFoundHandler())
	withTLS.EnableHTTP2, withTLS.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	withTLS.StartTLS()
	defer withTLS.Close()
	closes, err := net.Listen("tcp", "127.0.0.1:0") // like Qdrant with TLS, and like a proxy whose server does not run
	if err != nil {
		t.Fatal(err)
	}
	defer closes.Close()
	go func() {
		for {
			conn, err := closes.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1<<10))
			conn.Close()
		}
	}()
	for _, test := range []struct{ scheme, addr, want string }{
		{"qdrants", withTLS.Listener.Addr().String(), "set QDRANT_CA_FILE"},
		{"qdrants", qdranttest.New(t, nil).Addr(), "with qdrant://"},
		{"qdrant", closes.Addr().String(), "with qdrants://"},
	} {
		target, err := ParseTarget(test.scheme + "://" + test.addr + "/docs")
		if err != nil {
			t.Fatal(err)
		}
		c, err := Dial(target, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = c.check(background)
		if _, ok := errors.AsType[*UnavailableError](err); !ok || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an UnavailableError that contains %q", target, err, test.want)
		}
		c.Close()
	}
}
