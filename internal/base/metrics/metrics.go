// Package metrics exports Prometheus metrics of a server. It observes calls,
// stages and the state of indexes, and changes none of them.
package metrics

import (
	"context"
	"net/http"
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
