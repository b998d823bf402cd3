package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/observe"
	"cairn/retriever"
)

// heard is a listener that keeps the calls it hears of.
type heard struct {
	observe.Silent
	mu    sync.Mutex
	calls []observe.Call
	ends  []observe.Outcome
}

func (h *heard) Begin(ctx context.Context, c *observe.Call) context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, *c)
	return ctx
}

func (h *heard) End(_ context.Context, _ *observe.Call, o observe.Outcome, took time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if took < 0 {
		o.Status += " in no time"
	}
	h.ends = append(h.ends, o)
}

// lines returns what was heard and clears it.
func (h *heard) lines() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lines []string
	for i, c := range h.calls {
		id := c.ID
		if strings.Contains(id, "-") { // one of ours, and different in each process
			id = "new"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s/%s %s %d", id, c.Workspace, c.Tool, c.TraceParent, c.TraceState, h.ends[i].Status, h.ends[i].Code))
	}
	h.calls, h.ends = nil, nil
	return lines
}

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// TestListener: the listener hears of every way to call a tool, with its trace and request.
func TestListener(t *testing.T) {
	h := &heard{}
	failing := &fake{search: func(_ context.Context, q retriever.Query) (*retriever.Answer, error) {
		switch q.Text {
		case "broken":
			return nil, errors.New("out of order")
		case "odd":
			return nil, &retriever.InvalidError{Field: "query", Reason: "odd"}
		}
		return &retriever.Answer{Results: []retriever.Result{}, Degraded: []string{}}, nil
	}}
	o := &Options{Listener: h, Workspace: "w", NoRateLimit: true}
	_, server := startHTTP(t, failing.folder(), o, nil)
	meta := strings.TrimSuffix(meta2026, "}")
	for _, c := range []struct {
		query, meta string
		header      []string
		want        string
	}{
		{"a", meta2026, nil, "new w read_context / ok 0"},
		{"a", meta + `,"traceparent":"` + traceparent + `","tracestate":"a=b"}`, []string{"traceparent", "00-other"}, "new w read_context " + traceparent + "/a=b ok 0"},
		{"a", meta2026, []string{"traceparent", traceparent, "tracestate", "c=d", observe.IDHeader, "r7"}, "r7 w read_context " + traceparent + "/c=d ok 0"},
		{"a", meta + `,"traceparent":7}`, nil, "new w read_context / ok 0"},
		{"odd", meta2026, nil, "new w read_context / refused -32602"},
		{"broken", meta2026, nil, "new w read_context / failed -32603"},
	} {
		post(t, server.URL, request(2, "tools/call", `{"name":"read_context","arguments":{"query":"`+c.query+`"},`+c.meta+`}`),
			append([]string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "read_context"}, c.header...)...)
		if got := h.lines(); len(got) != 1 || got[0] != c.want {
			t.Errorf("query %q with %s and %v: %q, want %q", c.query, c.meta, c.header, got, c.want)
		}
	}
	// With a session, the context of a call is not that of its request.
	client := connectHTTP(t, server.URL, "", nil)
	params := &mcp.CallToolParams{Name: "status"}
	params.SetMeta(map[string]any{"traceparent": traceparent})
	if _, err := client.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	if got, want := h.lines(), []string{"new w status " + traceparent + "/ ok 0"}; !slices.Equal(got, want) {
		t.Errorf("in a session: %q, want %q", got, want)
	}
	// Bare methods, and other APIs of the server.
	s := New(failing.folder(), o)
	ctx := observe.WithID(t.Context(), "r9")
	if _, f := s.Call(ctx, "read_doc", []byte(`{"path":"docs/missing.md"}`)); f == nil {
		t.Error("a missing document was read")
	}
	if _, f := s.Call(ctx, "nothing", nil); f == nil {
		t.Error("a tool that is not there was called")
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	failing.search = func(ctx context.Context, _ retriever.Query) (*retriever.Answer, error) { return nil, ctx.Err() }
	if _, f := s.Call(cancelled, "read_context", []byte(`{"query":"x"}`)); f == nil {
		t.Error("a cancelled call was answered")
	}
	if got, want := h.lines(), []string{"r9 w read_doc / refused 1001", "r9 w read_context / cancelled -32603"}; !slices.Equal(got, want) {
		t.Errorf("straight calls: %q, want %q", got, want)
	}
	bare := newSession(t, (&fake{}).folder(), &Options{Listener: h})
	bare.send(request(1, "read_doc", `{"path":"docs/auth.md"}`))
	bare.receive()
	if got, want := h.lines(), []string{"new  read_doc / ok 0"}; !slices.Equal(got, want) {
		t.Errorf("a bare method: %q, want %q", got, want)
	}
}

func TestListenerHearsOfLimits(t *testing.T) {
	h := &heard{}
	now := time.Unix(0, 0)
	s := newSession(t, (&fake{}).folder(), &Options{Listener: h, Now: func() time.Time { return now }})
	for i := range 16 {
		s.send(request(i, "read_context", `{"query":"a"}`))
		s.receive()
	}
	lines := h.lines()
	if n := len(lines); n != 16 || lines[14] != "new  read_context / ok 0" || lines[15] != "new  read_context / limited 429" {
		t.Errorf("%d calls, the last two %q, want 15 answered and one limited", n, lines[max(0, n-2):])
	}
}

func TestReportLacks(t *testing.T) {
	var lacked [][]string
	for _, mode := range []retriever.Mode{retriever.Hybrid, retriever.Keyword} {
		ReportLacks(func(what []string) { lacked = append(lacked, what) }, retriever.Query{Mode: mode}, &retriever.Answer{Degraded: []string{"vectors", "stale"}})
	}
	if len(lacked) != 1 || !slices.Equal(lacked[0], []string{"vectors"}) {
		t.Errorf("lacked %v, want vectors, of the hybrid search alone", lacked)
	}
}
