package web

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"cairn/internal/index"
)

type indexPage struct {
	Status  *index.Status
	Skipped []skipped
	Latency *latencyChart
}

type skipped struct {
	Reason string
	Files  int
}

// latencyChart is a line chart of the latencies of the last searches.
type latencyChart struct {
	Points        string
	Width, Height int
	Searches      int
	P50, P95, Max string
}

// index shows the state of the index and the latencies of searches.
func (h *Handler) index(w http.ResponseWriter, r *http.Request) {
	status, err := h.sources.Engine.Status(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	p := &indexPage{Status: status, Latency: newLatencyChart(h.took.list())}
	for _, reason := range slices.Sorted(maps.Keys(status.Skipped)) {
		p.Skipped = append(p.Skipped, skipped{reason, status.Skipped[reason]})
	}
	h.show(w, r, http.StatusOK, "index", "Index", "", p)
}

func newLatencyChart(took []time.Duration) *latencyChart {
	if len(took) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(took))
	at := func(q float64) string {
		return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Round(100 * time.Microsecond).String()
	}
	p := &latencyChart{Width: 480, Height: 96, Searches: len(took), P50: at(0.5), P95: at(0.95), Max: at(1)}
	top := float64(sorted[len(sorted)-1])
	var points []string
	for i, d := range took {
		x := float64(p.Width) * float64(i) / float64(max(1, len(took)-1))
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, float64(p.Height)*(1-float64(d)/top)+0.5))
	}
	p.Points = strings.Join(points, " ")
	return p
}
