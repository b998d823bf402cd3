package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"cairn/internal/folder/index"
	"cairn/internal/text/walk"
)

type indexPage struct {
	Status  *index.Status
	Built   string
	Skipped []skipped
	Latency *latencyChart
}

// skipped lists the files that are not indexed for one reason.
type skipped struct {
	Reason  string
	Files   int
	Paths   []string // of the first maxSkipped
	Further int
}

// maxSkipped is the maximum number of paths listed for each reason.
const maxSkipped = 100

// latencyChart is a line chart of the latencies of the last searches. Its axes are in the template.
type latencyChart struct {
	Points        string
	Searches      int
	P50, P95, Max string
}

// index shows the state of the index and the latencies of searches.
func (h *Handler) index(w http.ResponseWriter, r *http.Request) error {
	status, err := index.StatusOp.Call(r.Context(), h.site.Folder, index.StatusRequest{}, nil)
	if err != nil {
		return err
	}
	p := &indexPage{Status: status, Built: status.BuiltAt, Latency: newLatencyChart(h.took.list())}
	if built, err := time.Parse(time.RFC3339, status.BuiltAt); err == nil {
		p.Built = built.UTC().Format("2 January 2006, 15:04 MST")
	}
	names, err := index.SkippedOp.Call(r.Context(), h.site.Folder, struct{}{}, nil)
	if err != nil {
		return err
	}
	paths := map[string][]string{}
	for _, e := range names {
		if len(paths[e.Reason]) < maxSkipped {
			paths[e.Reason] = append(paths[e.Reason], e.Path)
		}
	}
	for reason, n := range status.Skipped {
		p.Skipped = append(p.Skipped, skipped{walk.WithAdvice(reason), n, paths[reason], n - len(paths[reason])})
	}
	slices.SortFunc(p.Skipped, func(a, b skipped) int { return cmp.Or(b.Files-a.Files, strings.Compare(a.Reason, b.Reason)) })
	return h.show(w, r, page{Section: "index", Title: "Index", Data: p})
}

// The ends of the axes of a latencyChart in its template.
const chartLeft, chartTop, chartRight, chartBottom = 64, 14, 552, 126

func newLatencyChart(took []time.Duration) *latencyChart {
	if len(took) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(took))
	at := func(q float64) string {
		return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Round(100 * time.Microsecond).String()
	}
	p := &latencyChart{Searches: len(took), P50: at(0.5), P95: at(0.95), Max: at(1)}
	top := float64(sorted[len(sorted)-1])
	var points []string
	if len(took) == 1 {
		took = append(took, took[0]) // a line needs two points
	}
	for i, d := range took {
		x := chartLeft + (chartRight-chartLeft)*float64(i)/float64(len(took)-1)
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, chartBottom-(chartBottom-chartTop)*float64(d)/top))
	}
	p.Points = strings.Join(points, " ")
	return p
}
