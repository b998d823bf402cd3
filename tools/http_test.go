package tools

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/job"
	"cairn/internal/base/owner"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
)

// startHTTP serves the fake engine. The header X-Caller names the caller of a
// request, which may write when the name begins with "w", and administer with "a".
func startHTTP(t *testing.T, folder *owner.Folder, o *Options, limits *httpLimits) (*HTTP, *httptest.Server) {
	t.Helper()
	caller := func(r *http.Request) (Caller, bool) {
		id := r.Header.Get("X-Caller")
		admin := strings.HasPrefix(id, "a")
		return Caller{ID: id, MayWrite: admin || strings.HasPrefix(id, "w"), MayAdminister: admin}, id != ""
	}
	var handler *HTTP
	if s := New(folder, o); limits != nil {
		handler = s.newHTTP(caller, *limits)
	} else {
		handler = s.HTTP(caller)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.Close()
		server.Close()
	})
	return handler, server
}

// as is a client of the SDK that calls itself by the header X-Caller.
type as string

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if a != "" {
		r.Header.Set("X-Caller", string(a))
	}
	return http.DefaultTransport.RoundTrip(r)
}

func connectHTTP(t *testing.T, url string, caller as, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, o)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: caller}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// post sends one message and returns the answer: the status, and the first
// event or the body.
func post(t *testing.T, url, body string, header ...string) (status int, answer string, h http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, data, ok := strings.Cut(string(text), "data: "); ok {
		return resp.StatusCode, strings.TrimSpace(data), resp.Header
	}
	return resp.StatusCode, strings.TrimSpace(string(text)), resp.Header
}

const meta2026 = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"}}`

// TestOneURL speaks each revision on the same address.
func TestOneURL(t *testing.T) {
	_, server := startHTTP(t, (&fake{}).folder(), nil, nil)
	// Without sessions, as of 2026-07-28.
	status, answer, header := post(t, server.URL, request(1, "server/discover", `{`+meta2026+`}`), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "server/discover")
	if status != 200 || header.Get("Mcp-Session-Id") != "" || !strings.Contains(answer, `"2026-07-28"`) || !strings.Contains(answer, "Its index is ready") {
		t.Errorf("server/discover: %d %s, want the revisions and the instructions, and no session", status, answer)
	}
	status, answer, _ = post(t, server.URL, request(2, "tools/call", `{"name":"read_context","arguments":{"query":"a"},`+meta2026+`}`),
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "read_context")
	if status != 200 || !strings.Contains(answer, "docs/auth.md") {
		t.Errorf("tools/call without a session: %d %s, want the document", status, answer)
	}
	if status, answer, _ = post(t, server.URL, request(3, "tools/call", `{"name":"read_context","arguments":{"query":"a"},`+meta2026+`}`),
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "status"); status != 400 || !strings.Contains(answer, "-32020") {
		t.Errorf("a header that contradicts the body: %d %s, want 400 and -32020", status, answer)
	}
	// With sessions, as before.
	for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26"} {
		status, answer, header = post(t, server.URL, request(1, "initialize", `{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
		id := header.Get("Mcp-Session-Id")
		if status != 200 || id == "" || !strings.Contains(answer, `"protocolVersion":"`+version+`"`) {
			t.Fatalf("initialize %s: %d %s, session %q, want that revision and a session", version, status, answer, id)
		}
		session := []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", version}
		if status, answer, _ = post(t, server.URL, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...); status != 202 {
			t.Errorf("initialized %s: %d %s", version, status, answer)
		}
		if status, answer, _ = post(t, server.URL, request(2, "tools/call", `{"name":"read_doc","arguments":{"path":"docs/auth.md"}}`), session...); status != 200 || !strings.Contains(answer, "# Auth") {
			t.Errorf("tools/call %s: %d %s, want the document", version, status, answer)
		}
		session[1] = "another"
		if status, answer, _ = post(t, server.URL, request(3, "tools/list", `{}`), session...); status != 404 {
			t.Errorf("tools/list %s in a session that is none: %d %s, want 404", version, status, answer)
		}
	}
	// The SDK's own client needs no help.
	session := connectHTTP(t, server.URL, "", nil)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 4 {
		t.Errorf("the SDK's client: %v, %v, want 4 tools", list, err)
	}
}

// TestHTTPProgress: progress arrives before the answer, in both eras.
func TestHTTPProgress(t *testing.T) {
	_, server := startHTTP(t, (&fake{}).folder(), nil, nil)
	heard := make(chan string, 8)
	session := connectHTTP(t, server.URL, "", &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		heard <- r.Params.Message
	}})
	params := &mcp.CallToolParams{Name: "index", Arguments: map[string]any{}}
	params.SetProgressToken("p")
	if _, err := session.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	if first, second := <-heard, <-heard; first != "scan: 1 of 1" || second != "vectors: 2 of 2" {
		t.Errorf("progress %q and %q, want the scan and the vectors", first, second)
	}
}

// TestHTTPCancel: a client that disconnects cancels its call.
func TestHTTPCancel(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	e := &fake{index: func(ctx context.Context, _ index.IndexRequest, _ func(job.Progress)) (*index.IndexReport, error) {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}}
	_, server := startHTTP(t, e.folder(), nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(request(1, "tools/call", `{"name":"index","arguments":{},`+meta2026+`}`)))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "index"} {
		req.Header.Set(k, v)
	}
	go func() {
		<-began
		cancel()
	}()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	<-ended // the call ends because its client has disconnected
}

// TestHTTPScopes: a caller that may only read cannot write, whatever its request looks like.
func TestHTTPScopes(t *testing.T) {
	_, server := startHTTP(t, (&fake{}).folder(), nil, nil)
	call := request(1, "tools/call", `{"name":"index","arguments":{},`+meta2026+`}`)
	headers := func(caller string) []string {
		h := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "index"}
		if caller != "" {
			h = append(h, "X-Caller", caller)
		}
		return h
	}
	for _, c := range []struct {
		caller string
		want   int
	}{{"", 200}, {"writer", 200}, {"reader", 403}} {
		status, answer, header := post(t, server.URL, call, headers(c.caller)...)
		if status != c.want || (c.want == 403) != strings.Contains(header.Get("WWW-Authenticate"), "insufficient_scope") {
			t.Errorf("index by %q: %d %s, want %d", c.caller, status, answer, c.want)
		}
	}
	rebuild := request(1, "tools/call", `{"name":"index","arguments":{"rebuild":true},`+meta2026+`}`)
	for caller, refused := range map[string]bool{"": false, "writer": true, "admin": false} {
		if status, answer, _ := post(t, server.URL, rebuild, headers(caller)...); status != 200 || strings.Contains(answer, "scope admin") != refused {
			t.Errorf("a rebuild by %q: %d %s, refused should be %v", caller, status, answer, refused)
		}
	}
	if status, answer, _ := post(t, server.URL, "["+call+"]", "X-Caller", "reader"); status != 403 {
		t.Errorf("index by a reader in a batch: %d %s, want 403", status, answer)
	}
	// encoding/json ignores the case of names; so does the check.
	if status, answer, _ := post(t, server.URL, `{"jsonrpc":"2.0","id":1,"METHOD":"tools/call","params":{"NAME":"index"}}`, "X-Caller", "reader"); status == 200 && !strings.Contains(answer, "error") {
		t.Errorf("index by a reader in capitals: %d %s, want a refusal", status, answer)
	}
	if status, answer, _ := post(t, server.URL, request(1, "tools/call", `{"name":"read_context","arguments":{"query":"a"},`+meta2026+`}`),
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "read_context", "X-Caller", "reader"); status != 200 {
		t.Errorf("read_context by a reader: %d %s, want 200", status, answer)
	}
}

// TestHTTPSessionBelongsToItsCaller: a session's id alone does not authenticate.
func TestHTTPSessionBelongsToItsCaller(t *testing.T) {
	_, server := startHTTP(t, (&fake{}).folder(), nil, nil)
	_, _, header := post(t, server.URL, request(1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`), "X-Caller", "writer")
	id := header.Get("Mcp-Session-Id")
	for caller, want := range map[string]int{"writer": 200, "wrong": 403} {
		if status, answer, _ := post(t, server.URL, request(2, "ping", `{}`), "Mcp-Session-Id", id, "X-Caller", caller); status != want {
			t.Errorf("ping by %s in the session of writer: %d %s, want %d", caller, status, answer, want)
		}
	}
}

func TestHTTPBounds(t *testing.T) {
	h, server := startHTTP(t, (&fake{}).folder(), nil, &httpLimits{body: 1000, sessions: 4, streams: 1})
	if status, answer, _ := post(t, server.URL, `{"x":"`+strings.Repeat("y", 1000)+`"}`); status != 413 {
		t.Errorf("a long body: %d %s, want 413", status, answer)
	}
	initialize := request(1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`)
	var ids []string
	for i, want := range []int{200, 200, 503} {
		status, answer, header := post(t, server.URL, initialize)
		if status != want {
			t.Errorf("session %d: %d %s, want %d", i+1, status, answer, want)
		}
		ids = append(ids, header.Get("Mcp-Session-Id"))
	}
	open := func() *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Mcp-Session-Id", ids[0])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	first := open()
	defer first.Body.Close()
	second := open()
	second.Body.Close()
	if first.StatusCode != 200 || second.StatusCode != 503 {
		t.Errorf("two streams: %d and %d, want 200 and 503", first.StatusCode, second.StatusCode)
	}
	h.Close() // ends the stream, or the read below waits for ever
	if rest, err := io.ReadAll(first.Body); err != nil || strings.Contains(string(rest), "data: {") {
		t.Errorf("the stream ended with %q, %v", rest, err)
	}
}

// A batch over HTTP is bounded as on stdio: 20,000 calls in one POST with unread
// answers took 300 MB.
func TestHTTPBatchIsBounded(t *testing.T) {
	h, server := startHTTP(t, (&fake{}).folder(), nil, nil)
	batch := func(n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(request(1, "ping", `{}`)+",", n), ",") + "]"
	}
	for n, want := range map[int]int{0: 400, maxBatch + 1: 400, 20_000: 400} {
		status, answer, _ := post(t, server.URL, batch(n))
		if status != want || !strings.Contains(answer, `"code":-32600`) {
			t.Errorf("a batch of %d: %d %.200s, want %d with code -32600", n, status, answer, want)
		}
	}
	const client = "address 127.0.0.1"
	if !h.messages.Take(client, maxInFlight/2) {
		t.Fatal("no room for messages")
	}
	if status, answer, header := post(t, server.URL, request(1, "ping", `{}`)); status != 503 || header.Get("Retry-After") == "" {
		t.Errorf("beyond the messages of a client: %d %s, want 503", status, answer)
	}
	if status, answer, _ := post(t, server.URL, request(1, "tools/list", `{}`), "X-Caller", "writer"); status == 503 {
		t.Errorf("another client meanwhile: %d %s", status, answer)
	}
	h.messages.Return(client, maxInFlight/2)
}

// One client's initialize in a loop does not lock others out: it gets half of the
// sessions, and idle ones give way.
func TestHTTPSessionsOfOneClient(t *testing.T) {
	now := time.Now()
	_, server := startHTTP(t, (&fake{}).folder(), &Options{Now: func() time.Time { return now }}, &httpLimits{body: maxLine, sessions: 4})
	begin := func(caller string) (int, string) {
		status, _, header := post(t, server.URL, request(1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`), "X-Caller", caller)
		return status, header.Get("Mcp-Session-Id")
	}
	var ids []string
	for i, want := range []int{200, 200, 503} {
		status, id := begin("a")
		if ids = append(ids, id); status != want {
			t.Errorf("session %d of one client: %d, want %d", i+1, status, want)
		}
	}
	for i, caller := range []string{"b", "c"} {
		if status, _ := begin(caller); status != 200 {
			t.Errorf("client %s after %d others: %d, want 200", caller, i+1, status)
		}
	}
	if status, _ := begin("d"); status != 503 {
		t.Errorf("a session more than there may be: %d, want 503", status)
	}
	now = now.Add(idleSession)
	if status, answer, _ := post(t, server.URL, request(2, "ping", `{}`), "Mcp-Session-Id", ids[1], "X-Caller", "a"); status != 200 {
		t.Errorf("ping: %d %s", status, answer)
	}
	if status, _ := begin("d"); status != 200 {
		t.Errorf("when sessions are idle: %d, want 200", status)
	}
	if status, answer, _ := post(t, server.URL, request(2, "ping", `{}`), "Mcp-Session-Id", ids[1], "X-Caller", "a"); status != 200 {
		t.Errorf("the session in use ended: %d %s", status, answer)
	}
}

// A request before the session is initialized is answered by the SDK without a code.
func TestHTTPErrorsHaveACode(t *testing.T) {
	_, server := startHTTP(t, (&fake{}).folder(), nil, nil)
	_, _, header := post(t, server.URL, request(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}`))
	for _, method := range []string{"tools/list", "no/such"} {
		_, answer, _ := post(t, server.URL, request(2, method, `{}`), "Mcp-Session-Id", header.Get("Mcp-Session-Id"))
		if strings.Contains(answer, `"code":0`) {
			t.Errorf("%s: %s", method, answer)
		}
	}
	w := httptest.NewRecorder()
	if n, err := (coded{w}).Write([]byte(`data: {"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"m"}}`)); n != 63 || err != nil || !strings.Contains(w.Body.String(), `"code":-32600`) {
		t.Errorf("an error without a code: %d, %v, %s", n, err, w.Body)
	}
}

func TestCall(t *testing.T) {
	s := New((&fake{}).folder(), nil)
	for range 40 { // more than the limits for agents allow
		if _, f := s.Call(t.Context(), "read_context", json.RawMessage(`{"query":"a"}`)); f != nil {
			t.Fatal(f)
		}
	}
	if _, f := s.Call(t.Context(), "read_context", json.RawMessage(`{"query":7}`)); f == nil || f.Code != CodeInvalidParams {
		t.Errorf("a query that is a number: %v, want %d", f, CodeInvalidParams)
	}
	if _, f := s.Call(t.Context(), "nothing", nil); f == nil || f.Code != CodeNotFound {
		t.Errorf("a tool that is not there: %v, want %d", f, CodeNotFound)
	}
}

// TestHTTPChannel: a header names the tasks that a request means.
func TestHTTPChannel(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "plan.md"), []byte("# Plan\n\n## Tasks\n\n### A\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tasks, err := workspace.OpenTasks(config.Selection{Root: root}, config.Default(), &workspace.TaskOptions{Person: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	_, server := startHTTP(t, (&fake{}).folder(), &Options{Groups: []Group{DAG}, Tasks: tasks, NoRateLimit: true}, nil)
	headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "dag_get_ready_tasks"}
	call := request(1, "tools/call", `{"name":"dag_get_ready_tasks","arguments":{},`+meta2026+`}`)
	if _, answer, _ := post(t, server.URL, call, headers...); !strings.Contains(answer, "No DAG exists for this channel") {
		t.Errorf("without the header: %s, want the cards, of which there are none", answer)
	}
	if _, answer, _ := post(t, server.URL, call, append(headers, "X-Cairn-Channel", "/plan.md")...); !strings.Contains(answer, `"readyTasks":["a"]`) {
		t.Errorf("with the header: %s, want the document's task", answer)
	}
	named := request(1, "tools/call", `{"name":"dag_get_ready_tasks","arguments":{"channelId":"cards"},`+meta2026+`}`)
	if _, answer, _ := post(t, server.URL, named, append(headers, "X-Cairn-Channel", "/plan.md")...); !strings.Contains(answer, "No DAG exists for this channel") {
		t.Errorf("a channel that is named: %s, want it to win", answer)
	}
}
