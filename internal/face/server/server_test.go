package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/models"
	"cairn/tools"
)

// folder opens an indexed workspace of files.
func folder(t testing.TB, name string, files map[string]string) Workspace {
	t.Helper()
	served, _ := open(t, name, files)
	return served
}

// open is folder that also returns the workspace.
func open(t testing.TB, name string, files map[string]string) (Workspace, *workspace.Workspace) {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := config.Load(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(t.Context(), config.Selection{Root: root, Rule: config.RuleFlag}, cfg, workspace.Owning, workspace.Options{
		Command: "test", Settings: index.Settings{
			Description: (&testutil.HashEmbedder{}).Description(),
			Model:       func() (models.Embedder, error) { return &testutil.HashEmbedder{}, nil },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := w.Tasks(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tasks.Close()
		w.Close()
	})
	if _, err := index.IndexOp.Call(t.Context(), w.Folder, index.IndexRequest{}, nil); err != nil {
		t.Fatal(err)
	}
	return Workspace{Name: name, Folder: w.Folder, Tools: tools.New(w.Folder, &tools.Options{Scan: w.Scan, Tasks: tasks})}, w
}

// two returns two workspaces, each with a word that the other does not have.
func two(t *testing.T) []Workspace {
	t.Helper()
	return []Workspace{
		folder(t, "a", map[string]string{"a.md": "# Alpha\n\nThe aardvark sleeps.\n\n## Second\n\nMore.\n"}),
		folder(t, "b", map[string]string{"b.md": "# Beta\n\nThe buffalo runs.\n"}),
	}
}

func newServer(t *testing.T, workspaces []Workspace, o *Options) *Server {
	t.Helper()
	s, err := New(workspaces, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// ask passes a request to the handler, from this machine unless a header says
// otherwise.
func ask(t *testing.T, h http.Handler, method, target, body string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Host = "localhost:7420"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestAPI(t *testing.T) {
	s := newServer(t, two(t), nil)
	for _, c := range []struct {
		method, target, body string
		status               int
		want                 string // part of the answer
	}{
		{"GET", "/api/search?q=aardvark", "", 200, `"path":"a.md"`},
		{"GET", "/api/search?q=aardvark&limit=1&mode=keyword&explain=true&path_prefix=a", "", 200, `"path":"a.md"`},
		{"GET", "/api/search?query=aardvark&tags=x", "", 200, `"results":[]`},
		{"POST", "/api/search", `{"query":"aardvark","max_tokens":400}`, 200, `The aardvark sleeps.`},
		{"GET", "/w/a/api/search?q=aardvark", "", 200, `"path":"a.md"`},
		{"GET", "/w/b/api/search?q=buffalo", "", 200, `"path":"b.md"`},
		{"GET", "/api/read?path=a.md%23second", "", 200, `"content":"## Second\n\nMore."`},
		{"GET", "/api/read?paths=a.md&paths=nope.md", "", 200, `"failed":[{"path":"nope.md"`},
		{"POST", "/w/b/api/read", `{"path":"b.md"}`, 200, `# Beta`},
		{"GET", "/api/status", "", 200, `"state":"ready"`},
		{"GET", "/api/read?path=nope.md", "", 404, `"code":1001`},
		{"GET", "/api/read?path=../b.md", "", 400, `"code":-32602`},
		{"GET", "/api/read?path=a.md&expected_hash=00", "", 409, `"code":1006`},
		{"GET", "/api/search", "", 400, `query`},
		{"GET", "/api/search?q=x&limit=many", "", 400, `limit: \"many\", want integer`},
		{"GET", "/api/search?q=x&limit=51", "", 400, `limit`},
		{"GET", "/api/search?q=x&colour=red", "", 400, `unknown argument \"colour\"`},
		{"GET", "/api/search?q=x&q=y", "", 400, `occurs 2 times`},
		{"POST", "/api/search", `{"query":`, 400, `not JSON`},
		{"POST", "/api/search", `[]`, 400, `must be an object`},
		{"POST", "/api/search", `{"query":"` + strings.Repeat("x", maxAPIBody) + `"}`, 413, `too large`},
		{"DELETE", "/api/search", "", 404, `no such address`},
		{"GET", "/api/nothing", "", 404, `no such address`},
		{"GET", "/nothing", "", 404, ``},
		{"GET", "/w/c/api/search?q=x", "", 404, `no workspace \"c\"`},
		{"GET", "/w/", "", 404, `no workspace \"\"`},
		{"GET", "/healthz", "", 200, "ok"},
		{"GET", "/readyz", "", 200, `{"ready":true,"workspaces":[{"name":"a","ready":true,"state":"ready"},{"name":"b","ready":true,"state":"ready"}]}`},
	} {
		r := ask(t, s, c.method, c.target, c.body)
		if got := body(t, r); r.StatusCode != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s %.60s %.60s: %d %.300s, want %d with %s", c.method, c.target, c.body, r.StatusCode, got, c.status, c.want)
		}
	}
	if r := ask(t, s, "POST", "/api/search", `query=x`, "Content-Type", "application/x-www-form-urlencoded"); r.StatusCode != 415 {
		t.Errorf("a form: %d, want 415", r.StatusCode)
	}
}

func TestNotReady(t *testing.T) {
	w := folder(t, "a", map[string]string{"a.md": "# A\n"})
	w.Folder.Close()
	r := ask(t, newServer(t, []Workspace{w}, nil), "GET", "/readyz", "")
	if got := body(t, r); r.StatusCode != 503 || !strings.Contains(got, `"ready":false`) {
		t.Errorf("/readyz of a closed workspace: %d %s, want 503", r.StatusCode, got)
	}
}

// TestMounted: no path reaches a handler mounted in another workspace.
func TestMounted(t *testing.T) {
	s := newServer(t, two(t), nil)
	for _, name := range []string{"a", "b"} {
		s.Handle(name, "/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s at %s%s", name, Prefix(r), r.URL.Path)
		}))
	}
	s.Handle("b", "POST /tasks/{id}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "task %s of b", r.PathValue("id"))
	}))
	for target, want := range map[string]string{
		"/": "a at /", "/x/y": "a at /x/y", "/w/a/x": "a at /w/a/x", "/w/b/x": "b at /w/b/x", "/w/b/": "b at /w/b/",
		"/w/b/%2e%2e/a/x": "", "/w/b%2fx": "", "/w/b%2f..%2fa/x": "", "/w/b/../../x": "", "//w/b/x": "", "/w/a/../b/x": "", "/w": "a at /w",
	} {
		r := ask(t, s, "GET", target, "")
		got := body(t, r)
		if want == "" { // whatever it is, it is not an answer
			if r.StatusCode == 200 {
				t.Errorf("GET %s: %q, want no answer", target, got)
			}
		} else if got != want {
			t.Errorf("GET %s: %q, want %q", target, got, want)
		}
	}
	if got := body(t, ask(t, s, "POST", "/w/b/tasks/7", "")); got != "task 7 of b" {
		t.Errorf("POST /w/b/tasks/7: %q", got)
	}
	for workspace, pattern := range map[string]string{"b": "POST /tasks/{other}", "c": "/"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("mounting %s in %s does not fail", pattern, workspace)
				}
			}()
			s.Handle(workspace, pattern, http.NotFoundHandler())
		}()
	}
}

// TestPanicOfAHandler: a panic is in the log with its stack, and fails the request with an
// answer that states the cause.
func TestPanicOfAHandler(t *testing.T) {
	var log strings.Builder
	s := newServer(t, []Workspace{folder(t, "a", nil)}, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.Handle("a", "/page", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a defect") }))
	r := ask(t, s, "GET", "/page", "")
	if text := body(t, r); r.StatusCode != http.StatusInternalServerError || !strings.Contains(text, "a defect") {
		t.Errorf("answer %d %s, want 500 and the cause", r.StatusCode, text)
	}
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "server_test.go") {
		t.Errorf("log %q, want an error with the stack", log.String())
	}
}

func TestNewRefuses(t *testing.T) {
	w := folder(t, "a", nil)
	for _, names := range [][]string{{}, {"A"}, {""}, {"a/b"}, {".."}, {"a", "a"}} {
		var all []Workspace
		for _, name := range names {
			w.Name = name
			all = append(all, w)
		}
		if _, err := New(all, nil); err == nil {
			t.Errorf("workspaces called %q: no error", names)
		}
	}
}

// TestServeStops: at shutdown the server finishes requests in progress and ends
// its streams.
func TestServeStops(t *testing.T) {
	s := newServer(t, two(t)[:1], nil)
	began, release := make(chan struct{}), make(chan struct{})
	s.Handle("a", "/slow", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-release
		io.WriteString(w, "done")
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	url := "http://" + l.Addr().String()
	slow := make(chan string, 1)
	go func() {
		r, err := http.Get(url + "/slow")
		if err != nil {
			slow <- err.Error()
			return
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		slow <- string(text)
	}()
	<-began
	// A stream of a session, as in older revisions of MCP.
	req, _ := http.NewRequest("POST", url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	req, _ = http.NewRequest("GET", url+"/mcp", nil)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", r.Header.Get("Mcp-Session-Id"))
	stream, err := http.DefaultClient.Do(req)
	if err != nil || stream.StatusCode != 200 {
		t.Fatal(stream, err)
	}
	defer stream.Body.Close()
	stop()
	if _, err := io.ReadAll(stream.Body); err != nil { // ends, or the test hangs
		t.Errorf("the stream ended with %v", err)
	}
	close(release)
	if got := <-slow; got != "done" {
		t.Errorf("the request in flight: %q, want its answer", got)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := http.Get(url + "/healthz"); err == nil {
		t.Error("it still answers")
	}
}

// TestAnswersAreJSON: the API returns the same value as the tool.
func TestAnswersAreJSON(t *testing.T) {
	w := two(t)[0]
	s := newServer(t, []Workspace{w}, nil)
	var got, want any
	if err := json.Unmarshal([]byte(body(t, ask(t, s, "GET", "/api/read?path=a.md", ""))), &got); err != nil {
		t.Fatal(err)
	}
	answer, f := w.Tools.Call(t.Context(), "read_doc", json.RawMessage(`{"path":"a.md"}`))
	if f != nil {
		t.Fatal(f)
	}
	text, _ := json.Marshal(answer)
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{got, want} {
		delete(v.(map[string]any), "cached")
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the API answers %v, the tool %v", got, want)
	}
}
