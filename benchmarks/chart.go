package benchmarks

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// chartRow is a row of a chart: a name, marks on a track, and a figure.
type chartRow struct {
	Name, Figure string
	Marks        []mark
}

// mark covers the track from X over the width W, in percent. H is its height in percent; 0
// means that of its class, which is one of page.html.
type mark struct {
	Class       string
	X, W, H     float64
	Title, Text string
}

// scale returns the position on a track from low to high in percent.
func scale(low, high float64) func(v float64) float64 {
	return func(v float64) float64 { return 100 * (v - low) / math.Max(high-low, 1e-9) }
}

// whisker marks an interval.
func whisker(ci [2]float64, at func(float64) float64) mark {
	return mark{Class: "whisker", X: at(ci[0]), W: at(ci[1]) - at(ci[0]), Title: fmt.Sprintf("between %.4f and %.4f", ci[0], ci[1])}
}

// rankBand is a range of ranks with one colour in a bar, up to last.
type rankBand struct {
	last int
	name string
}

var rankBands = []rankBand{{1, "first"}, {3, "2 to 3"}, {5, "4 to 5"}, {10, "6 to 10"}, {runDepth, "11 to 100"}, {math.MaxInt, "not found"}}

// drawRanks draws the ranks of the first relevant documents of the queries, below a legend.
func drawRanks(runs []*Run) []chartRow {
	rows := make([]chartRow, 1+len(runs))
	for i, b := range rankBands {
		width := 100 / float64(len(rankBands))
		rows[0].Marks = append(rows[0].Marks, mark{Class: fmt.Sprint("band", i), X: width * float64(i), W: width, Text: b.name})
	}
	for n, r := range runs {
		counts := make([]int, len(rankBands))
		for i := range r.Queries {
			q, band := &r.Queries[i], len(rankBands)-1
			if at := slices.IndexFunc(q.Ranking, func(d Scored) bool { return q.Relevant[d.ID] > 0 }); at >= 0 {
				band = slices.IndexFunc(rankBands, func(b rankBand) bool { return at < b.last })
			}
			counts[band]++
		}
		row, x := &rows[1+n], 0.0
		row.Name = r.System
		for i, c := range counts {
			m := mark{Class: fmt.Sprint("band", i), X: x, W: 100 * float64(c) / float64(max(1, len(r.Queries)))}
			m.Title = fmt.Sprintf("%s: %s, %d of %d queries", r.System, rankBands[i].name, c, len(r.Queries))
			if m.W > 7 {
				m.Text = fmt.Sprintf("%.0f %%", m.W)
			}
			row.Marks = append(row.Marks, m)
			x += m.W
		}
	}
	return rows
}

// drawLatency draws the distribution of the times of each run on a logarithmic axis.
func drawLatency(runs []*Run) (rows []chartRow) {
	const bins = 60
	low, high := math.Inf(1), 0.0
	for _, r := range runs {
		for _, ms := range r.times() {
			low, high = math.Min(low, ms), math.Max(high, ms)
		}
	}
	at := scale(math.Log(low*.9), math.Log(high*1.1))
	for _, r := range runs {
		times := r.times()
		if len(times) < 2 {
			continue
		}
		var counts [bins]float64
		for _, ms := range times {
			counts[int(at(math.Log(ms))*bins/100)]++
		}
		l, most := r.Latency(), slices.Max(counts[:])
		row := chartRow{Name: r.System, Figure: fmt.Sprintf("p50 %.1f, p95 %.1f ms", l.P50, l.P95)}
		for i, c := range counts {
			if c > 0 {
				row.Marks = append(row.Marks, mark{Class: "bin", X: 100 * float64(i) / bins, W: 100. / bins, H: 100 * c / most, Title: fmt.Sprintf("%.0f queries", c)})
			}
		}
		rows = append(rows, row)
	}
	if rows == nil {
		return nil
	}
	axis := chartRow{Name: "ms"}
	for _, tick := range []float64{.1, .3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000} {
		if low <= tick && tick <= high {
			axis.Marks = append(axis.Marks, mark{Class: "tick", X: at(math.Log(tick)), Text: fmt.Sprint(tick)})
		}
	}
	return append(rows, axis)
}

// drawAblations draws the effect of each variant, the largest loss first.
func drawAblations(all []Ablation) (rows []chartRow) {
	low, high := 0.0, 0.0
	for _, a := range all {
		low, high = math.Min(low, a.CI[0]), math.Max(high, a.CI[1])
	}
	at := scale(low, high)
	for _, a := range slices.SortedStableFunc(slices.Values(all), func(a, b Ablation) int { return cmp.Compare(a.Change, b.Change) }) {
		class := "worse"
		if a.Change > 0 {
			class = "better"
		}
		if a.CI[0] <= 0 && a.CI[1] >= 0 {
			class = "same"
		}
		bar := mark{Class: class, X: at(math.Min(0, a.Change)), W: at(math.Max(0, a.Change)) - at(math.Min(0, a.Change)), Title: fmt.Sprintf("%+.4f, p %.4f", a.Change, a.P)}
		rows = append(rows, chartRow{a.Variant, fmt.Sprintf("%+.3f", a.Change), []mark{bar, whisker(a.CI, at), {Class: "tick", X: at(0)}}})
	}
	return rows
}
