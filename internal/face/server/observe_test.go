package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/base/metrics"
	"cairn/internal/base/observe"
	"cairn/internal/base/owner"
	"cairn/internal/face/token"
	"cairn/internal/folder/index"
	"cairn/retriever"
	"cairn/tools"
)

// lame is an index with settable failures and degradations.
type lame struct {
	index *owner.Folder
	lacks []string
	err   error
}

// folder returns a folder whose operations call l.
func (l *lame) folder() *owner.Folder {
	return owner.Local(func(s *owner.Server) owner.Service {
		index.SearchOp.Answer(s, l.Search)
		index.ReadOp.Answer(s, func(ctx context.Context, r retriever.ReadRequest) (*retriever.Reading, error) {
			return index.ReadOp.Call(ctx, l.index, r, nil)
		})
		index.StatusOp.Answer(s, func(ctx context.Context, r index.StatusRequest) (*index.Status, error) {
			return index.StatusOp.Call(ctx, l.index, r, nil)
		})
		return nil
	})
}

func (l *lame) Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
	if l.err != nil {
		return nil, l.err
	}
	a, err := index.SearchOp.Call(ctx, l.index, q, nil)
	if err == nil {
		a.Degraded = append([]string{}, l.lacks...)
	}
	return a, err
}

// measured returns workspaces with metrics, as a server opens them.
func measured(t *testing.T, m *metrics.Metrics, of ...Workspace) (all []Workspace, engines map[string]*lame) {
	t.Helper()
	engines = map[string]*lame{}
	for _, w := range of {
		e := &lame{index: w.Folder}
		engines[w.Name] = e
		counted := m.Workspace(w.Name, func(ctx context.Context) (metrics.Index, error) {
			st, err := index.StatusOp.Call(ctx, w.Folder, index.StatusRequest{}, nil)
			if err != nil {
				return metrics.Index{}, err
			}
			return IndexState(st), nil
		})
		w.Folder = e.folder()
		w.Tools, w.Degraded = tools.New(w.Folder, &tools.Options{Listener: counted, Lacked: counted.SetDegraded}), counted.Degraded
		all = append(all, w)
	}
	return all, engines
}

// TestMetrics: /metrics and /readyz reflect calls and degradations.
func TestMetrics(t *testing.T) {
	m := metrics.New()
	all, engines := measured(t, m, two(t)...)
	s := newServer(t, all, &Options{Metrics: m, Listener: m})
	for range 2 {
		ask(t, s, "GET", "/api/search?q=aardvark", "")
	}
	ask(t, s, "GET", "/api/read?path=a.md", "")
	ask(t, s, "GET", "/api/read?path=none.md", "")
	ask(t, s, "GET", "/nowhere/to/be/found", "")
	ask(t, s, "BREW", "/api/search", "")
	engines["a"].lacks = []string{"vectors"}
	ask(t, s, "GET", "/api/search?q=other", "")
	if got := body(t, ask(t, s, "GET", "/readyz", "")); !strings.Contains(got, `"degraded":["vectors"]`) || !strings.Contains(got, `"ready":true`) {
		t.Errorf("/readyz without vectors: %s, want ready and degraded", got)
	}
	page := body(t, ask(t, s, "GET", "/metrics", ""))
	engines["a"].lacks = nil
	ask(t, s, "GET", "/api/search?q=third", "")
	engines["a"].err = errors.New("broken")
	ask(t, s, "GET", "/api/search?q=fourth", "")
	later := body(t, ask(t, s, "GET", "/metrics", ""))
	for _, c := range []struct{ page, want string }{
		{page, `cairn_call_seconds_count{status="ok",tool="read_context",workspace="a"} 3`},
		{page, `cairn_call_seconds_count{status="ok",tool="read_doc",workspace="a"} 1`},
		{page, `cairn_call_seconds_count{status="refused",tool="read_doc",workspace="a"} 1`},
		{page, `cairn_http_request_seconds_count{route="GET /api/search",status="ok"} 3`},
		{page, `cairn_http_request_seconds_count{route="GET /api/read",status="refused"} 1`},
		{page, `cairn_http_request_seconds_count{route="/api/",status="refused"} 1`},
		{page, `cairn_http_request_seconds_count{route="",status="refused"} 1`},
		{page, `cairn_query_cache_total{result="hit",workspace="a"} 1`},
		{page, `cairn_query_cache_total{result="miss",workspace="a"} 2`},
		{page, `cairn_stage_seconds_count{stage="vectors",workspace="a"} `},
		{page, `cairn_stage_seconds_count{stage="embed",workspace="a"} 2`},
		{page, `cairn_stage_seconds_count{stage="read",workspace="a"} 2`},
		{page, `cairn_stage_seconds_count{stage="embed",workspace="b"} 0`},
		{page, `cairn_degraded{workspace="a"} 1`},
		{page, `cairn_degraded{workspace="b"} 0`},
		{page, `cairn_degraded_seconds_total{what="vectors",workspace="a"} `},
		{page, `cairn_index_ready{workspace="a"} 1`},
		{page, `cairn_index_files{workspace="a"} 1`},
		{page, `cairn_index_pending_chunks{workspace="a"} 0`},
		{page, `cairn_index_vector_lag_seconds{workspace="a"} 0`},
		{page, `cairn_index_built_timestamp_seconds{workspace="a"} `},
		{page, `go_goroutines `},
		{page, `process_open_fds `},
		{later, `cairn_degraded{workspace="a"} 0`},
		{later, `cairn_call_seconds_count{status="failed",tool="read_context",workspace="a"} 1`},
		{later, `cairn_http_request_seconds_count{route="GET /api/search",status="failed"} 1`},
	} {
		if !strings.Contains(c.page, "\n"+c.want) {
			t.Errorf("/metrics lacks %s", c.want)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

// TestWhoMayReadMetrics: /metrics requires a token, and leaves out workspaces that
// the token has no access to.
func TestWhoMayReadMetrics(t *testing.T) {
	store := token.Open(filepath.Join(t.TempDir(), "tokens.json"), nil)
	m := metrics.New()
	all, _ := measured(t, m, two(t)...)
	s := newServer(t, all, &Options{Metrics: m, Tokens: store})
	for _, c := range []struct {
		name       string
		workspaces []string
		a, b       bool
	}{{"everything", nil, true, true}, {"of b", []string{"b"}, false, true}} {
		secret, _, err := store.New(t.Context(), c.name, token.Read, c.workspaces, 0)
		if err != nil {
			t.Fatal(err)
		}
		r := ask(t, s, "GET", "/metrics", "", "Authorization", "Bearer "+secret)
		page := body(t, r)
		if r.StatusCode != 200 || strings.Contains(page, `workspace="a"`) != c.a || strings.Contains(page, `workspace="b"`) != c.b {
			t.Errorf("with a token for %s: %d\n%s", c.name, r.StatusCode, page)
		}
	}
	for _, header := range [][]string{nil, {"Authorization", "Bearer cairn_000000000000_AAAA"}} {
		if r := ask(t, s, "GET", "/metrics", "", header...); r.StatusCode != 401 || strings.Contains(body(t, r), "cairn_call") {
			t.Errorf("with %v: %d, want 401", header, r.StatusCode)
		}
	}
	if r := ask(t, newServer(t, two(t), nil), "GET", "/metrics", ""); r.StatusCode != 404 {
		t.Errorf("where nothing is counted: %d, want 404", r.StatusCode)
	}
	if r := ask(t, s, "GET", "/metrics", "", "Host", "evil.example"); r.StatusCode != 403 {
		t.Errorf("by another name: %d, want 403", r.StatusCode)
	}
}

// diary records how calls ended.
type diary struct {
	observe.Silent
	mu    sync.Mutex
	lines []string
}

func (d *diary) End(_ context.Context, c *observe.Call, o observe.Outcome, _ time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what := c.Method + " " + c.Route
	if c.Tool != "" {
		what = "tool " + c.Tool
	}
	d.lines = append(d.lines, fmt.Sprintf("%s %s %s %s %d %v", c.ID, what, c.Workspace, o.Status, o.Code, o.Stream))
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

// TestRequests: the listener sees each request once and each tool call once, both
// with the same ID.
func TestRequests(t *testing.T) {
	d := &diary{}
	w := folder(t, "a", map[string]string{"a.md": "# Alpha\n"})
	w.Tools = tools.New(w.Folder, &tools.Options{Listener: d, Workspace: "a"})
	s := newServer(t, []Workspace{w}, &Options{Listener: d, MaxRequests: 1, MaxWait: time.Nanosecond})
	s.Handle("a", "GET /events", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		if again := ask(t, s, "GET", "/api/status", "", observe.IDHeader, "r2"); again.StatusCode != 503 {
			t.Errorf("one too many: %d", again.StatusCode)
		}
	}))
	for _, c := range []struct {
		method, path, body string
		header             []string
		want               []string
	}{
		{"GET", "/api/status", "", nil, []string{"tool status a ok 0 false", "GET GET /api/status a ok 200 false"}},
		{"GET", "/w/a/api/read?path=no.md", "", nil, []string{"tool read_doc a refused 1001 false", "GET GET /api/read a refused 404 false"}},
		{"BREW", "/x", "", nil, []string{"OTHER   refused 404 false"}},
		{"GET", "/healthz", "", nil, []string{"GET GET /healthz  ok 200 false"}},
		{"GET", "/healthz", "", []string{"Host", "evil.example"}, []string{"GET   refused 403 false"}},
		{"GET", "/events", "", nil, []string{"GET   limited 503 false", "GET GET /events a ok 200 true"}},
	} {
		r := ask(t, s, c.method, c.path, c.body, append([]string{observe.IDHeader, "r1"}, c.header...)...)
		for i := range c.want {
			id := "r1 "
			if strings.Contains(c.want[i], "limited") {
				id = "r2 "
			}
			c.want[i] = id + c.want[i]
		}
		if got := d.read(); !slices.Equal(got, c.want) || r.Header.Get(observe.IDHeader) != "r1" {
			t.Errorf("%s %s: %q, want %q", c.method, c.path, got, c.want)
		}
	}
	r := ask(t, s, "GET", "/healthz", "", observe.IDHeader, "with a blank")
	if id := r.Header.Get(observe.IDHeader); id == "" || id == "with a blank" || !strings.HasPrefix(d.read()[0], id+" ") {
		t.Errorf("a request without a good name is called %q", id)
	}
	// MCP over a real connection: the ID reaches the tool.
	web := httptest.NewServer(s)
	defer web.Close()
	text, header := mcpCall("status", `{}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/mcp", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(observe.IDHeader, "r3")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if got := body(t, answer); !strings.Contains(got, "structuredContent") {
		t.Errorf("tools/call: %d %s", answer.StatusCode, got)
	}
	answer.Body.Close()
	web.Close() // waits for requests in progress
	if got, want := d.read(), []string{"r3 tool status a ok 0 false", "r3 POST /mcp a ok 200 false"}; !slices.Equal(got, want) {
		t.Errorf("over MCP: %q, want %q", got, want)
	}
}

func TestIndexState(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	st := &index.Status{IndexState: retriever.IndexState{State: "building", Files: 2, Sections: 3, Embedded: 4, Pending: 5, BuiltAt: "2026-11-21T12:00:00Z"}, Watching: "events", VectorsSince: at}
	want := metrics.Index{Ready: true, Files: 2, Sections: 3, Embedded: 4, Pending: 5, BuiltAt: at, VectorsSince: at, Indexing: true, Watching: true}
	if got := IndexState(st); got != want {
		t.Errorf("IndexState = %+v, want %+v", got, want)
	}
	if got := IndexState(&index.Status{IndexState: retriever.IndexState{State: "missing"}}); got != (metrics.Index{}) {
		t.Errorf("IndexState of none = %+v", got)
	}
}

// BenchmarkSearch measures the cost of observing a search, on an index so small
// that the search itself is cheap.
func BenchmarkSearch(b *testing.B) {
	for _, c := range []struct {
		name            string
		counted, logged bool
	}{{"bare", false, false}, {"counted", true, false}, {"counted and logged", true, true}} {
		b.Run(c.name, func(b *testing.B) {
			w, m, o := folder(b, "a", map[string]string{"a.md": "# Alpha\n\nThe aardvark sleeps.\n"}), metrics.New(), &Options{}
			if c.counted {
				var log observe.Listener
				if c.logged {
					log = observe.Log(slog.New(slog.NewJSONHandler(io.Discard, nil)), false)
				}
				counts := m.Workspace("a", func(context.Context) (metrics.Index, error) { return metrics.Index{}, nil })
				w.Tools = tools.New(w.Folder, &tools.Options{Listener: observe.Join(counts, log), Lacked: counts.SetDegraded})
				o.Metrics, o.Listener = m, observe.Join(m, log)
			}
			s, err := New([]Workspace{w}, o)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(s.Close)
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), "GET", "/api/search?q=aardvark", nil)
				r.Host = "localhost"
				rec := httptest.NewRecorder()
				if s.ServeHTTP(rec, r); rec.Code != 200 {
					b.Fatal(rec.Code)
				}
			}
		})
	}
}
