package metrics

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cairn/internal/base/observe"
)

// clock is a time that a test advances.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// scrape returns the page that Prometheus reads.
func scrape(t *testing.T, m *Metrics, permits func(*http.Request, string) bool) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(permits).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(w.Body)
	if w.Code != http.StatusOK || err != nil {
		t.Fatalf("/metrics: %d, %v\n%s", w.Code, err, text)
	}
	return string(text)
}

func all(*http.Request, string) bool { return true }

// wants checks that the page contains every line.
func wants(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("the metrics lack %q", line)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

func testMetrics() (*Metrics, *clock) {
	c := &clock{time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	m := New()
	m.now = c.now
	return m, c
}

func TestCounting(t *testing.T) {
	m, c := testMetrics()
	w := m.Workspace("a", func(context.Context) (Index, error) {
		return Index{Ready: true, Files: 3, Sections: 7, Embedded: 5, Pending: 2, BuiltAt: c.at.Add(-time.Minute), KeywordSince: c.at.Add(-2 * time.Second), Watching: true}, nil
	})
	tool := &observe.Call{Tool: "read_context"}
	for _, status := range []string{observe.OK, observe.OK, observe.Refused} {
		w.End(w.Begin(t.Context(), tool), tool, observe.Outcome{Status: status}, 4*time.Millisecond)
	}
	ctx := observe.With(t.Context(), w)
	observe.Cached(ctx, true)
	observe.Cached(ctx, false)
	observe.Cached(ctx, false)
	w.Stage(ctx, observe.Embed, c.at, 8*time.Millisecond)
	w.Stage(ctx, observe.Stages, c.at, time.Hour) // unknown
	route := &observe.Call{Method: "GET", Route: "GET /api/search"}
	m.End(t.Context(), route, observe.Outcome{Status: observe.OK, Code: 200}, time.Millisecond)
	m.End(t.Context(), route, observe.Outcome{Status: observe.OK, Code: 200, Stream: true}, time.Hour)
	m.End(t.Context(), tool, observe.Outcome{Status: observe.OK}, time.Hour) // counted by its workspace
	w.End(t.Context(), route, observe.Outcome{Status: observe.OK}, time.Hour)
	wants(t, scrape(t, m, all),
		`cairn_call_seconds_count{status="ok",tool="read_context",workspace="a"} 2`,
		`cairn_call_seconds_count{status="refused",tool="read_context",workspace="a"} 1`,
		`cairn_call_seconds_bucket{status="ok",tool="read_context",workspace="a",le="0.003"} 0`,
		`cairn_call_seconds_bucket{status="ok",tool="read_context",workspace="a",le="0.005"} 2`,
		`cairn_stage_seconds_sum{stage="embed",workspace="a"} 0.008`,
		`cairn_stage_seconds_count{stage="embed",workspace="a"} 1`,
		`cairn_stage_seconds_count{stage="keyword",workspace="a"} 0`,
		`cairn_query_cache_total{result="hit",workspace="a"} 1`,
		`cairn_query_cache_total{result="miss",workspace="a"} 2`,
		`cairn_http_request_seconds_count{route="GET /api/search",status="ok"} 1`,
		`cairn_index_known{workspace="a"} 1`,
		`cairn_index_ready{workspace="a"} 1`,
		`cairn_index_building{workspace="a"} 0`,
		`cairn_index_watching{workspace="a"} 1`,
		`cairn_index_files{workspace="a"} 3`,
		`cairn_index_sections{workspace="a"} 7`,
		`cairn_index_embedded_chunks{workspace="a"} 5`,
		`cairn_index_pending_chunks{workspace="a"} 2`,
		`cairn_index_built_timestamp_seconds{workspace="a"} 1.79526234e+09`,
		`cairn_index_keyword_lag_seconds{workspace="a"} 2`,
		`cairn_index_vector_lag_seconds{workspace="a"} 0`,
		`cairn_degraded{workspace="a"} 0`,
		`# TYPE go_goroutines gauge`,
	)
}

// TestDegraded: degraded time runs from the search that misses something to the
// next one that does not, and scrapes in between include it.
func TestDegraded(t *testing.T) {
	m, c := testMetrics()
	w := m.Workspace("a", func(context.Context) (Index, error) { return Index{}, nil })
	w.SetDegraded(nil)
	c.at = c.at.Add(time.Hour)
	if page := scrape(t, m, all); strings.Contains(page, "cairn_degraded_seconds_total{") {
		t.Errorf("degraded time before anything was missing:\n%s", page)
	}
	w.SetDegraded([]string{"vectors"})
	wants(t, scrape(t, m, all), `cairn_degraded{workspace="a"} 1`, `cairn_degraded_seconds_total{what="vectors",workspace="a"} 0`)
	c.at = c.at.Add(40 * time.Second)
	wants(t, scrape(t, m, all), `cairn_degraded_seconds_total{what="vectors",workspace="a"} 40`)
	c.at = c.at.Add(20 * time.Second)
	w.SetDegraded([]string{"vectors", "stale"})
	if got := strings.Join(w.Degraded(), " "); got != "vectors stale" {
		t.Errorf("degraded by %q, want vectors and stale", got)
	}
	c.at = c.at.Add(5 * time.Second)
	w.SetDegraded(nil)
	c.at = c.at.Add(time.Hour)
	wants(t, scrape(t, m, all), `cairn_degraded{workspace="a"} 0`,
		`cairn_degraded_seconds_total{what="vectors",workspace="a"} 65`, `cairn_degraded_seconds_total{what="stale",workspace="a"} 5`)
}

// TestPermits: a client sees only the workspaces it may use.
func TestPermits(t *testing.T) {
	m, _ := testMetrics()
	for _, name := range []string{"a", "b"} {
		m.Workspace(name, func(context.Context) (Index, error) { return Index{}, nil }).SetDegraded([]string{"vectors"})
	}
	page := scrape(t, m, func(_ *http.Request, workspace string) bool { return workspace == "b" })
	if strings.Contains(page, `workspace="a"`) || !strings.Contains(page, `workspace="b"`) || !strings.Contains(page, "go_goroutines") {
		t.Errorf("metrics for a client that may use b only:\n%s", page)
	}
	// The metrics of both are on one page, in order.
	if page := scrape(t, m, all); strings.Count(page, "# TYPE cairn_degraded gauge") != 1 || !strings.Contains(page, `workspace="a"`) {
		t.Errorf("metrics of two workspaces:\n%s", page)
	}
}

func TestUnknownIndex(t *testing.T) {
	m, _ := testMetrics()
	m.Workspace("a", func(context.Context) (Index, error) { return Index{Ready: true}, errors.New("broken") })
	page := scrape(t, m, all)
	wants(t, page, `cairn_index_known{workspace="a"} 0`, `cairn_index_ready{workspace="a"} 0`)
	if strings.Contains(page, "cairn_index_files") {
		t.Errorf("an index without a known state has files:\n%s", page)
	}
}

// TestAllocations: every query is measured, so that must allocate little.
func TestAllocations(t *testing.T) {
	m, c := testMetrics()
	w := m.Workspace("a", nil)
	ctx := observe.With(t.Context(), w)
	call, route := &observe.Call{Tool: "read_context"}, &observe.Call{Route: "GET /api/search"}
	if n := testing.AllocsPerRun(100, func() {
		w.Stage(ctx, observe.Keyword, c.at, time.Millisecond)
		w.Cached(ctx, true)
		w.End(ctx, call, observe.Outcome{Status: observe.OK}, time.Millisecond)
		m.End(ctx, route, observe.Outcome{Status: observe.OK}, time.Millisecond)
		w.SetDegraded(nil)
	}); n > 2 { // the pair of labels, the key of the map of each histogram
		t.Errorf("counting one search allocates %g times, want at most 2", n)
	}
}

func BenchmarkSearchCounted(b *testing.B) {
	w := New().Workspace("a", nil)
	ctx := observe.With(b.Context(), w)
	call := &observe.Call{Tool: "read_context"}
	b.ReportAllocs()
	for b.Loop() {
		for s := range observe.Read {
			timer := observe.Begin(ctx, s)
			timer.End(ctx)
		}
		observe.Cached(ctx, true)
		w.End(ctx, call, observe.Outcome{Status: observe.OK}, time.Millisecond)
	}
}
