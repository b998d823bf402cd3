// Package metrics exports Prometheus metrics of a server. It observes calls,
// stages and the state of indexes, and changes none of them.
package metrics

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cairn/internal/base/observe"
)

// buckets are upper bounds in seconds, dense around the time of a search: a keyword search
// takes 2 ms, a run of the indexer minutes.
var buckets = []float64{.0005, .001, .002, .003, .005, .0075, .01, .015, .02, .03, .045, .06, .1, .2, .5, 1, 2, 5, 30, 300}

// Metrics holds the metrics of one process. Each workspace has its own registry, because a
// client sees only the workspaces it may use. As a listener, Metrics counts HTTP requests.
type Metrics struct {
	observe.Silent
	process  *prometheus.Registry
	requests *prometheus.HistogramVec
	now      func() time.Time

	mu         sync.Mutex
	workspaces []*Workspace
}

// New returns empty metrics.
func New() *Metrics {
	m := &Metrics{
		process: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cairn_http_request_seconds", Buckets: buckets,
			Help: "Time of HTTP requests except event streams, by route and status."}, []string{"route", "status"}),
		now: time.Now,
	}
	m.process.MustRegister(m.requests, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// End implements observe.Listener.
func (m *Metrics) End(_ context.Context, c *observe.Call, o observe.Outcome, took time.Duration) {
	if c.Tool == "" && !o.Stream {
		m.requests.WithLabelValues(c.Route, o.Status).Observe(took.Seconds())
	}
}

// Handler serves the metrics of the process and of the workspaces for which
// permits returns true.
func (m *Metrics) Handler(permits func(r *http.Request, workspace string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visible := prometheus.Gatherers{m.process}
		m.mu.Lock()
		for _, ws := range m.workspaces {
			if permits(r, ws.name) {
				visible = append(visible, ws.registry)
			}
		}
		m.mu.Unlock()
		promhttp.HandlerFor(visible, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})
}

// Workspace counts the calls and stages of one workspace, as their listener.
type Workspace struct {
	observe.Silent
	name     string
	labels   prometheus.Labels // of all its metrics
	registry *prometheus.Registry
	now      func() time.Time

	calls     *prometheus.HistogramVec
	stages    [observe.Stages]prometheus.Observer
	hit, miss prometheus.Counter
	index     func(context.Context) (Index, error)

	mu       sync.Mutex
	degraded []string           // of the last search
	since    time.Time          // end of the time in spent
	spent    map[string]float64 // degraded seconds by missing part
}

// Index is the state of a workspace's index.
type Index struct {
	Ready              bool // searchable
	Files, Sections    int
	Embedded, Pending  int       // chunks with and without a vector
	BuiltAt            time.Time // zero if never
	KeywordSince       time.Time // of the oldest change missing in keyword search; zero for none
	VectorsSince       time.Time // the same for semantic search
	Indexing, Watching bool
}

// Workspace adds a workspace. Each collection of the metrics calls index, for at
// most indexWait.
func (m *Metrics) Workspace(name string, index func(context.Context) (Index, error)) *Workspace {
	labels := prometheus.Labels{"workspace": name}
	w := &Workspace{
		name: name, labels: labels, registry: prometheus.NewRegistry(), now: m.now, index: index, spent: map[string]float64{},
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cairn_call_seconds", Buckets: buckets, ConstLabels: labels,
			Help: "Time of tool calls over any transport."}, []string{"tool", "status"}),
	}
	stages := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cairn_stage_seconds", Buckets: buckets, ConstLabels: labels,
		Help: "Time of the stages of searches and reads. The keyword leg runs concurrently with embedding and the vector leg."}, []string{"stage"})
	for s := range observe.Stages {
		w.stages[s] = stages.WithLabelValues(s.String())
	}
	cache := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cairn_query_cache_total", ConstLabels: labels,
		Help: "Query vectors found in the cache (hit) or computed (miss)."}, []string{"result"})
	w.hit, w.miss = cache.WithLabelValues("hit"), cache.WithLabelValues("miss")
	w.registry.MustRegister(w.calls, stages, cache, w)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.workspaces = append(m.workspaces, w)
	return w
}

// End implements observe.Listener.
func (w *Workspace) End(_ context.Context, c *observe.Call, o observe.Outcome, took time.Duration) {
	if c.Tool != "" {
		w.calls.WithLabelValues(c.Tool, o.Status).Observe(took.Seconds())
	}
}

// Stage implements observe.Listener.
func (w *Workspace) Stage(_ context.Context, s observe.Stage, _ time.Time, took time.Duration) {
	if s < observe.Stages {
		w.stages[s].Observe(took.Seconds())
	}
}

// Cached implements observe.Listener.
func (w *Workspace) Cached(_ context.Context, hit bool) {
	if hit {
		w.hit.Inc()
	} else {
		w.miss.Inc()
	}
}

// SetDegraded records which parts of the index were missing for a search, such as vectors. They
// count as missing until the next call.
func (w *Workspace) SetDegraded(missing []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(missing) == 0 && len(w.degraded) == 0 {
		return
	}
	w.spend()
	w.degraded = slices.Clone(missing)
	for _, what := range missing {
		w.spent[what] += 0 // export the counter from now on
	}
}

// Degraded returns the parts of the index that were missing for the last search.
func (w *Workspace) Degraded() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.degraded)
}

// spend counts the degraded time until now. The caller holds w.mu.
func (w *Workspace) spend() {
	now := w.now()
	for _, what := range w.degraded {
		w.spent[what] += now.Sub(w.since).Seconds()
	}
	w.since = now
}

// indexWait bounds the wait for the state of an index.
const indexWait = 2 * time.Second

// Describe implements prometheus.Collector. The metrics that Collect returns differ.
func (w *Workspace) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector: it reads the state of the workspace.
func (w *Workspace) Collect(out chan<- prometheus.Metric) {
	gauge := func(name, help string, v float64) {
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("cairn_"+name, help, nil, w.labels), prometheus.GaugeValue, v)
	}
	yes := func(name, help string, b bool) {
		if b {
			gauge(name, help, 1)
		} else {
			gauge(name, help, 0)
		}
	}
	w.mu.Lock()
	w.spend()
	yes("degraded", "1 if the last search was degraded, for example by missing vectors.", len(w.degraded) > 0)
	spent := prometheus.NewDesc("cairn_degraded_seconds_total", "Seconds of degraded search, by what was missing.", []string{"what"}, w.labels)
	for what, seconds := range w.spent {
		out <- prometheus.MustNewConstMetric(spent, prometheus.CounterValue, seconds, what)
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), indexWait)
	defer cancel()
	x, err := w.index(ctx)
	yes("index_known", "0 when the state of the index is not available; the other index metrics are then absent.", err == nil)
	yes("index_ready", "1 when the workspace can be searched.", err == nil && x.Ready)
	if err != nil {
		return
	}
	yes("index_building", "1 while the indexer runs.", x.Indexing)
	yes("index_watching", "1 while the files are watched for changes.", x.Watching)
	gauge("index_files", "Documents in the index.", float64(x.Files))
	gauge("index_sections", "Sections of the documents.", float64(x.Sections))
	gauge("index_embedded_chunks", "Chunks with a vector.", float64(x.Embedded))
	gauge("index_pending_chunks", "Chunks without a vector.", float64(x.Pending))
	if !x.BuiltAt.IsZero() {
		gauge("index_built_timestamp_seconds", "Time of the last complete run of the indexer.", float64(x.BuiltAt.Unix()))
	}
	lag := func(since time.Time) float64 {
		if since.IsZero() {
			return 0
		}
		return max(0, w.now().Sub(since).Seconds())
	}
	gauge("index_keyword_lag_seconds", "Seconds since the oldest change missing in keyword search, 0 for none.", lag(x.KeywordSince))
	gauge("index_vector_lag_seconds", "Seconds since the oldest change missing in semantic search, 0 for none.", lag(x.VectorsSince))
}
