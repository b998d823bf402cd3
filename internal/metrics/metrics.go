// Package metrics counts the work on requests for Prometheus: calls and
// stages by their time, what is degraded and for how long, and how far each
// index is behind its files.
package metrics

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cairn/internal/observe"
)

// buckets are seconds. They are close where searches are: a keyword search
// takes two thousandths, a run of the indexer minutes.
var buckets = []float64{.0005, .001, .002, .003, .005, .0075, .01, .015, .02, .03, .045, .06, .1, .2, .5, 1, 2, 5, 30, 300}

// Metrics are those of one process. What belongs to a workspace is kept apart
// from all others, so that it can be told to those who may know of it. As a
// listener it counts requests over HTTP.
type Metrics struct {
	observe.Silent
	process  *prometheus.Registry
	requests *histograms
	now      func() time.Time

	mu         sync.Mutex
	workspaces []*Workspace
}

// New returns metrics that nothing has been counted in yet.
func New() *Metrics {
	m := &Metrics{
		process: prometheus.NewRegistry(),
		requests: newHistograms(prometheus.HistogramOpts{Name: "cairn_http_request_seconds", Buckets: buckets,
			Help: "Time of requests over HTTP but for streams of events, by the pattern that answered."}, "route", "status"),
		now: time.Now,
	}
	m.process.MustRegister(m.requests.vec, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// End implements observe.Listener.
func (m *Metrics) End(_ context.Context, c *observe.Call, o observe.Outcome, took time.Duration) {
	if c.Tool == "" && !o.Stream {
		m.requests.observe(c.Route, o.Status, took)
	}
}

// Handler tells the metrics of the process and of those workspaces that
// permits lets whoever asks know of.
func (m *Metrics) Handler(permits func(r *http.Request, workspace string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told := prometheus.Gatherers{m.process}
		m.mu.Lock()
		for _, ws := range m.workspaces {
			if permits(r, ws.name) {
				told = append(told, ws.registry)
			}
		}
		m.mu.Unlock()
		promhttp.HandlerFor(told, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})
}

// histograms are the times of what two words name. Those of a pair are looked
// up once and kept: the words are few, and looking up costs more than counting.
type histograms struct {
	vec  *prometheus.HistogramVec
	kept sync.Map // [2]string -> prometheus.Observer
}

func newHistograms(o prometheus.HistogramOpts, labels ...string) *histograms {
	return &histograms{vec: prometheus.NewHistogramVec(o, labels)}
}

func (h *histograms) observe(first, second string, took time.Duration) {
	key := [2]string{first, second}
	kept, ok := h.kept.Load(key)
	if !ok {
		kept, _ = h.kept.LoadOrStore(key, h.vec.WithLabelValues(first, second))
	}
	kept.(prometheus.Observer).Observe(took.Seconds())
}
