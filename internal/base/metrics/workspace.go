package metrics

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"cairn/internal/base/observe"
)

// Workspace counts the calls and stages of one workspace, as their listener.
type Workspace struct {
	observe.Silent
	name     string
	registry *prometheus.Registry
	now      func() time.Time

	calls     *histograms
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
		name: name, registry: prometheus.NewRegistry(), now: m.now, index: index, spent: map[string]float64{},
		calls: newHistograms(prometheus.HistogramOpts{Name: "cairn_call_seconds", Buckets: buckets, ConstLabels: labels,
			Help: "Time of tool calls over any transport."}, "tool", "status"),
	}
	stages := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cairn_stage_seconds", Buckets: buckets, ConstLabels: labels,
		Help: "Time of the stages of searches and reads. The keyword leg runs concurrently with embedding and the vector leg."}, []string{"stage"})
	for s := range observe.Stages {
		w.stages[s] = stages.WithLabelValues(s.String())
	}
	cache := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cairn_query_cache_total", ConstLabels: labels,
		Help: "Query vectors found in the cache (hit) or computed (miss)."}, []string{"result"})
	w.hit, w.miss = cache.WithLabelValues("hit"), cache.WithLabelValues("miss")
	w.registry.MustRegister(w.calls.vec, stages, cache, w.state(labels))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.workspaces = append(m.workspaces, w)
	return w
}

// End implements observe.Listener.
func (w *Workspace) End(_ context.Context, c *observe.Call, o observe.Outcome, took time.Duration) {
	if c.Tool != "" {
		w.calls.observe(c.Tool, o.Status, took)
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

// state is a prometheus.Collector that reads the state at each collection.
type state struct {
	w                                                                      *Workspace
	degraded, spent, known, ready, building, watching                      *prometheus.Desc
	files, sections, embedded, pending, built, keywordBehind, vectorBehind *prometheus.Desc
}

func (w *Workspace) state(labels prometheus.Labels) *state {
	desc := func(name, help string, of ...string) *prometheus.Desc {
		return prometheus.NewDesc("cairn_"+name, help, of, labels)
	}
	return &state{
		w:             w,
		degraded:      desc("degraded", "1 if the last search was degraded, for example by missing vectors."),
		spent:         desc("degraded_seconds_total", "Seconds of degraded search, by what was missing.", "what"),
		known:         desc("index_known", "0 when the state of the index is not available; the other index metrics are then absent."),
		ready:         desc("index_ready", "1 when the workspace can be searched."),
		building:      desc("index_building", "1 while the indexer runs."),
		watching:      desc("index_watching", "1 while the files are watched for changes."),
		files:         desc("index_files", "Documents in the index."),
		sections:      desc("index_sections", "Sections of the documents."),
		embedded:      desc("index_embedded_chunks", "Chunks with a vector."),
		pending:       desc("index_pending_chunks", "Chunks without a vector."),
		built:         desc("index_built_timestamp_seconds", "Time of the last complete run of the indexer."),
		keywordBehind: desc("index_keyword_lag_seconds", "Seconds since the oldest change missing in keyword search, 0 for none."),
		vectorBehind:  desc("index_vector_lag_seconds", "Seconds since the oldest change missing in semantic search, 0 for none."),
	}
}

// Describe implements prometheus.Collector.
func (s *state) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.degraded, s.spent, s.known, s.ready, s.building, s.watching, s.files, s.sections, s.embedded, s.pending, s.built, s.keywordBehind, s.vectorBehind} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s *state) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	yes := func(d *prometheus.Desc, b bool) {
		if b {
			gauge(d, 1)
		} else {
			gauge(d, 0)
		}
	}
	s.w.mu.Lock()
	s.w.spend()
	yes(s.degraded, len(s.w.degraded) > 0)
	for what, seconds := range s.w.spent {
		out <- prometheus.MustNewConstMetric(s.spent, prometheus.CounterValue, seconds, what)
	}
	s.w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), indexWait)
	defer cancel()
	x, err := s.w.index(ctx)
	yes(s.known, err == nil)
	yes(s.ready, err == nil && x.Ready)
	if err != nil {
		return
	}
	yes(s.building, x.Indexing)
	yes(s.watching, x.Watching)
	gauge(s.files, float64(x.Files))
	gauge(s.sections, float64(x.Sections))
	gauge(s.embedded, float64(x.Embedded))
	gauge(s.pending, float64(x.Pending))
	if !x.BuiltAt.IsZero() {
		gauge(s.built, float64(x.BuiltAt.Unix()))
	}
	lag := func(since time.Time) float64 {
		if since.IsZero() {
			return 0
		}
		return max(0, s.w.now().Sub(since).Seconds())
	}
	gauge(s.keywordBehind, lag(x.KeywordSince))
	gauge(s.vectorBehind, lag(x.VectorsSince))
}
