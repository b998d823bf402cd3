package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cairn/internal/face/token"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`

// mcpCall is the body of a tools/call without a session.
func mcpCall(tool, args string) (body string, header []string) {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, args),
		[]string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool, "Accept", "application/json, text/event-stream"}
}

// TestWorkspacesAndTokens asks every address of two workspaces with every kind
// of token. Whatever the answer, it holds no text of a workspace that the
// token has no access to.
func TestWorkspacesAndTokens(t *testing.T) {
	store := token.Open(filepath.Join(t.TempDir(), "tokens.json"), nil)
	create := func(name string, scope token.Scope, workspaces ...string) string {
		secret, _, err := store.New(t.Context(), name, scope, workspaces, 0)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	secrets := map[string]string{
		"none": "", "wrong": "cairn_000000000000_AAAA", "shape": "nonsense",
		"read a": create("read a", token.Read, "a"), "write a": create("write a", token.Write, "a"),
		"read b": create("read b", token.Read, "b"), "write b": create("write b", token.Write, "b"),
		"read all": create("read all", token.Read), "write all": create("write all", token.Write),
		"revoked": create("revoked", token.Write),
	}
	if _, err := store.Revoke(t.Context(), "revoked"); err != nil {
		t.Fatal(err)
	}
	workspaces := two(t)
	s := newServer(t, workspaces, &Options{Tokens: store})
	for _, w := range workspaces {
		s.Handle(w.Name, "/page", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintf(rw, "page of %s", w.Name) }))
	}
	text := map[string]string{"a": "aardvark", "b": "buffalo"}
	type request struct {
		what, method, path, body string
		header                   []string
		write                    bool
	}
	requests := []request{
		{what: "search", method: "GET", path: "/api/search?q=aardvark+buffalo+sleeps+runs"},
		{what: "search by POST", method: "POST", path: "/api/search", body: `{"query":"aardvark buffalo","max_tokens":1000}`},
		{what: "read", method: "GET", path: "/api/read?paths=a.md&paths=b.md"},
		{what: "status", method: "GET", path: "/api/status"},
		{what: "page", method: "GET", path: "/page"},
		{what: "post to a page", method: "POST", path: "/page", body: `{}`, write: true},
	}
	for tool, args := range map[string]string{"read_context": `{"query":"aardvark buffalo"}`, "read_doc": `{"paths":["a.md","b.md"]}`, "index": `{}`, "create_task": `{"title":"x"}`} {
		body, header := mcpCall(tool, args)
		requests = append(requests, request{"mcp " + tool, "POST", "/mcp", body, header, tool == "index" || tool == "create_task"})
	}
	requests = append(requests, request{what: "mcp initialize", method: "POST", path: "/mcp", body: initialize, header: []string{"Accept", "application/json, text/event-stream"}})
	asked := 0
	for name, secret := range secrets {
		for _, workspace := range []string{"", "a", "b", "c"} {
			for _, r := range requests {
				prefix, meant := "/w/"+workspace, workspace
				if workspace == "" {
					prefix, meant = "", "a"
				}
				header := r.header
				if secret != "" {
					header = append([]string{"Authorization", "Bearer " + secret}, header...)
				}
				scope, of, known := strings.Cut(name, " ")
				want := 200
				switch {
				case !known:
					want = 401
				case meant == "c" || of != "all" && of != meant:
					want = 404
				case r.write && scope == "read":
					want = 403
				}
				answer := ask(t, s, r.method, prefix+r.path, r.body, header...)
				got := body(t, answer)
				asked++
				if answer.StatusCode != want {
					t.Errorf("%s of %q with token %q: %d %.200s, want %d", r.what, workspace, name, answer.StatusCode, got, want)
				}
				if want == 401 && !strings.Contains(answer.Header.Get("WWW-Authenticate"), "Bearer") {
					t.Errorf("%s of %q with token %q: 401 without a challenge", r.what, workspace, name)
				}
				for other, word := range text {
					if (other != meant || want != 200) && strings.Contains(got, "The "+word) {
						t.Errorf("%s of %q with token %q answers with the text of %s: %s", r.what, workspace, name, other, got)
					}
				}
				if answer.Header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s: CORS is on", r.what)
				}
			}
		}
	}
	t.Logf("%d requests", asked)
	// Health checks need no token, and without one they reveal no names.
	if r := ask(t, s, "GET", "/healthz", ""); r.StatusCode != 200 {
		t.Errorf("/healthz: %d", r.StatusCode)
	}
	if got := body(t, ask(t, s, "GET", "/readyz", "")); got != `{"ready":true}` {
		t.Errorf("/readyz without a token: %s", got)
	}
	if got := body(t, ask(t, s, "GET", "/readyz", "", "Authorization", "Bearer "+secrets["read b"])); strings.Contains(got, `"a"`) || !strings.Contains(got, `"b"`) {
		t.Errorf("/readyz with a token for b: %s", got)
	}
	// The server shows browsers how to sign in.
	r := ask(t, s, "GET", "/page", "", "Accept", "text/html")
	if got := r.Header.Values("WWW-Authenticate"); len(got) != 1 || !strings.Contains(body(t, r), "cairn open --web") {
		t.Errorf("a browser's challenge: %q, want a page", got)
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:"+secrets["read a"]))
	if r := ask(t, s, "GET", "/page", "", "Authorization", basic); r.StatusCode != 200 {
		t.Errorf("a token as password: %d, want 200", r.StatusCode)
	}
	if r := ask(t, s, "GET", "/", "", "Authorization", "Bearer "+secrets["read b"]); r.StatusCode != 303 || r.Header.Get("Location") != "/w/b/" {
		t.Errorf("the first page with a token for b: %d, location %q, want /w/b/", r.StatusCode, r.Header.Get("Location"))
	}
	// A session belongs to its token, even within the same workspace.
	accept := []string{"Accept", "application/json, text/event-stream"}
	r = ask(t, s, "POST", "/mcp", initialize, append(accept, "Authorization", "Bearer "+secrets["read a"])...)
	session := append(accept, "Mcp-Session-Id", r.Header.Get("Mcp-Session-Id"))
	ping := `{"jsonrpc":"2.0","id":2,"method":"ping","params":{}}`
	for name, want := range map[string]int{"read a": 200, "write a": 403, "read b": 404} {
		if r := ask(t, s, "POST", "/mcp", ping, append(session, "Authorization", "Bearer "+secrets[name])...); r.StatusCode != want {
			t.Errorf("ping with token %q in the session of another: %d, want %d", name, r.StatusCode, want)
		}
	}
	// The other workspace does not know the session.
	if r := ask(t, s, "POST", "/w/b/mcp", ping, append(session, "Authorization", "Bearer "+secrets["read all"])...); r.StatusCode != 404 {
		t.Errorf("a session of a in b: %d, want 404", r.StatusCode)
	}
	// With an unreadable token store every request fails.
	if err := os.WriteFile(store.Path(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := ask(t, s, "GET", "/api/status", "", "Authorization", "Bearer "+secrets["write all"]); r.StatusCode != 500 {
		t.Errorf("with a damaged store: %d, want 500", r.StatusCode)
	}
}

func TestHostAndOrigin(t *testing.T) {
	s := newServer(t, two(t)[:1], &Options{Hosts: []string{"cairn.example"}})
	for _, c := range []struct {
		network bool // the request came in over a network
		header  string
		want    int
	}{
		{false, "Host=localhost", 200}, {false, "Host=localhost:7420", 200}, {false, "Host=LOCALHOST:1", 200},
		{false, "Host=127.0.0.1:7420", 200}, {false, "Host=127.9.9.9", 200}, {false, "Host=[::1]:7420", 200}, {false, "Host=[::1]", 200},
		{false, "Host=cairn.example:443", 200}, {false, "Host=evil.example", 403}, {false, "Host=evil.example:7420", 403},
		{false, "Host=192.168.0.7:7420", 403}, {false, "Host=localhost.evil.example", 403}, {false, "Host=127.0.0.1.evil.example", 403}, {false, "Host=", 403},
		{true, "Host=192.168.0.7:7420", 200}, {true, "Host=[fe80::1]:7420", 200}, {true, "Host=evil.example", 403}, {true, "Host=cairn.example", 200}, {true, "Host=localhost", 200},
		{false, "Origin=http://localhost:7420", 200}, {false, "Origin=https://localhost:7420", 200}, {false, "Origin=http://LOCALHOST:7420", 200},
		{false, "Origin=http://localhost:7421", 403}, {false, "Origin=http://127.0.0.1:7420", 403}, {false, "Origin=http://evil.example", 403},
		{false, "Origin=null", 403}, {false, "Origin=", 403}, {false, "Origin=http://", 403}, {false, "Origin=http://localhost:7420.evil.example", 403},
		{false, "Origin=https://cairn.example:8443 same-origin", 200}, {false, "Origin=https://cairn.example:8443 cross-site", 403}, {false, "Host=evil.example same-origin", 403},
		{false, "Sec-Fetch-Site=same-origin", 200}, {false, "Sec-Fetch-Site=none", 200}, {false, "Sec-Fetch-Site=cross-site", 403}, {false, "Sec-Fetch-Site=same-site", 403},
	} {
		name, value, _ := strings.Cut(c.header, "=")
		value, site, _ := strings.Cut(value, " ")
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/status", nil)
		r.Host = "localhost:7420"
		if c.network {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(192, 168, 0, 7), Port: 7420}))
		}
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Set(name, value)
		}
		if site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("over a network %v, %s: %d, want %d", c.network, c.header, w.Code, c.want)
		}
	}
	// A link from another site may lead to a page, but not to the API.
	s.Handle("a", "/page", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	for path, want := range map[string]int{"/page": 200, "/api/status": 403} {
		if r := ask(t, s, "GET", path, "", link...); r.StatusCode != want {
			t.Errorf("a link to %s: %d, want %d", path, r.StatusCode, want)
		}
	}
	// The server answers no preflight request.
	if r := ask(t, s, "OPTIONS", "/api/search", "", "Origin", "http://evil.example", "Access-Control-Request-Method", "POST"); r.StatusCode != 403 || len(r.Header["Access-Control-Allow-Origin"]) > 0 {
		t.Errorf("a preflight: %d %v, want 403", r.StatusCode, r.Header)
	}
}

// One client may have a quarter of the requests in progress, and monitors are answered
// however many there are. 256 slow requests of one token gave everybody 503.
func TestOneClientDoesNotLockOthersOut(t *testing.T) {
	s := newServer(t, two(t)[:1], &Options{MaxRequests: 8})
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var begun atomic.Int32
		s.Handle("a", "/slow", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			begun.Add(1)
			<-release
		}))
		request := func(path, address string) int {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", path, nil)
			r.Host, r.RemoteAddr = "localhost", address+":1"
			s.ServeHTTP(w, r)
			if w.Code == 503 && w.Header().Get("Retry-After") == "" {
				t.Errorf("%s from %s: 503 without Retry-After", path, address)
			}
			return w.Code
		}
		var slow sync.WaitGroup
		occupy := func(address string, n int, want int32) {
			t.Helper()
			for range n {
				slow.Go(func() {
					if got := request("/slow", address); got != 200 {
						t.Errorf("/slow from %s: %d, want 200", address, got)
					}
				})
			}
			if synctest.Wait(); begun.Load() != want {
				t.Errorf("%d requests are in progress, want %d", begun.Load(), want)
			}
		}
		at := func(path, address string, want int, waits time.Duration) {
			t.Helper()
			began := time.Now()
			if got := request(path, address); got != want || time.Since(began) != waits {
				t.Errorf("%s from %s: %d after %v, want %d after %v", path, address, got, time.Since(began), want, waits)
			}
		}
		const limit = 5 * time.Second
		occupy("10.0.0.1", 2, 2)
		for path, want := range map[string]int{"/slow": 503, "/api/status": 503, "/healthz": 200, "/readyz": 200} {
			waits := limit
			if want == 200 {
				waits = 0
			}
			at(path, "10.0.0.1", want, waits) // a client at its limit
		}
		for i, address := range []string{"10.0.0.2", "10.0.0.3", "10.0.0.4"} {
			occupy(address, 2, int32(2*i+4))
		}
		at("/api/status", "10.0.0.5", 503, limit) // all room is taken
		at("/readyz", "10.0.0.5", 200, 0)
		occupy("10.0.0.1", queueLength*2, 8)  // they wait
		at("/api/status", "10.0.0.1", 503, 0) // too many wait
		close(release)
		slow.Wait()
		if begun.Load() != 8+queueLength*2 {
			t.Errorf("%d requests were answered, want %d", begun.Load(), 8+queueLength*2)
		}
		at("/api/status", "10.0.0.1", 200, 0)
	})
}

// What stays open for hours does not count among the requests, also where it is a POST.
func TestStreamsAreCountedApart(t *testing.T) {
	for _, c := range []struct {
		method, path, header string
		want                 bool
	}{
		{"GET", "/mcp", "", true},
		{"GET", "/w/a/mcp", "", true},
		{"GET", "/tasks/1/progress", "", true},
		{"GET", "/api/search", "subscriptions/listen", false},
		{"POST", "/mcp", "subscriptions/listen", true},
		{"POST", "/mcp", "tools/call", false},
		{"POST", "/mcp", "", false},
		{"POST", "/tasks/create", "subscriptions/listen", false},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Header.Set("Mcp-Method", c.header)
		if got := isStream(r); got != c.want {
			t.Errorf("%s %s with the method %q: a stream is %v, want %v", c.method, c.path, c.header, got, c.want)
		}
	}
}

func TestAPIIsLimitedInRate(t *testing.T) {
	s := newServer(t, two(t)[:1], nil)
	refused := 0
	for range 2 * apiBurst {
		if r := ask(t, s, "GET", "/api/status", ""); r.StatusCode == 429 && r.Header.Get("Retry-After") != "" {
			refused++
		}
	}
	if refused == 0 {
		t.Errorf("%d calls in one go: none refused", 2*apiBurst)
	}
	if r := ask(t, s, "GET", "/healthz", ""); r.StatusCode != 200 {
		t.Errorf("/healthz meanwhile: %d, want 200", r.StatusCode)
	}
}

// A client that does not read its answer loses the connection: each write has a
// deadline, and a long wait between two writes has none.
func TestWritesHaveADeadline(t *testing.T) {
	var w deadlines
	timed := &answerWriter{ResponseWriter: &w, control: http.NewResponseController(&w)}
	timed.extend()
	timed.WriteHeader(200)
	_, _ = timed.Write([]byte("a"))
	timed.Flush()
	if w.set != 4 {
		t.Errorf("the deadline was set %d times, want once for the request and for each of three writes", w.set)
	}
}

// TestStreamsStayOpen: a proxy neither buffers a stream nor closes one without events.
func TestStreamsStayOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kind, want := range map[string]string{"text/event-stream": "data: a\n\n:\n\n:\n\ndata: b\n\n", "application/json": "data: a\n\ndata: b\n\n"} {
			var under httptest.ResponseRecorder
			under.Body = new(bytes.Buffer)
			w := &answerWriter{ResponseWriter: &under, control: http.NewResponseController(&under)}
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, "data: a\n\n")
			<-time.After(2*heartbeat + time.Second)
			fmt.Fprint(w, "data: b\n\n")
			w.end()
			<-time.After(2 * heartbeat)
			if got := under.Body.String(); got != want || (under.Header().Get("X-Accel-Buffering") == "no") != strings.Contains(want, ":\n") {
				t.Errorf("%s: %q, %v, want %q", kind, got, under.Header(), want)
			}
		}
	})
}

type deadlines struct {
	httptest.ResponseRecorder
	set int
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	if left := time.Until(at); left > 0 && left <= writeTimeout {
		d.set++
	}
	return nil
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	s := newServer(t, two(t)[:1], nil)
	for _, path := range []string{"/healthz", "/api/status", "/nothing"} {
		r := ask(t, s, "GET", path, "")
		if got := r.Header.Get("Cross-Origin-Resource-Policy"); got != "same-origin" || r.Header.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: CORP %q, HSTS %q, want same-origin and none without TLS", path, got, r.Header.Get("Strict-Transport-Security"))
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "https://localhost/healthz", nil)
	if s.ServeHTTP(w, r); w.Header().Get("Strict-Transport-Security") == "" {
		t.Error("no HSTS over TLS")
	}
}

// TestConnectionLimits: the listener refuses headers that are too long.
func TestConnectionLimits(t *testing.T) {
	s := newServer(t, two(t)[:1], nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	req, _ := http.NewRequest("GET", "http://"+l.Addr().String()+"/healthz", nil)
	req.Header.Set("X-Long", strings.Repeat("x", 2*maxHeader))
	client := &http.Client{Timeout: 30 * time.Second}
	if r, err := client.Do(req); err != nil || r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a long header: %v, %v, want 431", r, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestRefusedPages: a browser gets every refusal as a page that fits a phone and says
// where to go; other clients get JSON as before.
func TestRefusedPages(t *testing.T) {
	s := newServer(t, two(t), nil)
	for _, c := range []struct {
		path   string
		header []string
		status int
		want   []string
	}{
		{"/w/nosuch/", nil, 404, []string{"Not found", "no workspace &#34;nosuch&#34; is served here", `<a href="/w/a/">a</a>`, `<a href="/w/b/">b</a>`}},
		{"/w/<script>/", nil, 404, []string{"&lt;script&gt;"}},
		{"/", []string{"Host", "elsewhere.example"}, 403, []string{"Not allowed", "allow the name with --allow-host"}},
	} {
		r := ask(t, s, "GET", c.path, "", append([]string{"Accept", "text/html,*/*"}, c.header...)...)
		text := body(t, r)
		if r.StatusCode != c.status || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") || !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d, %v", c.path, r.StatusCode, r.Header)
		}
		_, style, _ := strings.Cut(text, "<style>")
		style, _, _ = strings.Cut(style, "</style>")
		if sum := sha256.Sum256([]byte(style)); !strings.Contains(r.Header.Get("Content-Security-Policy"), "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
			t.Errorf("%s: the policy does not allow the style", c.path)
		}
		for _, want := range append(c.want, `name="viewport"`, "<h1>") {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", c.path, want, text)
			}
		}
	}
	if r := ask(t, s, "GET", "/w/nosuch/api/search", "", "Accept", "text/html"); r.Header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("the API answers with %s", r.Header.Get("Content-Type"))
	}
}
