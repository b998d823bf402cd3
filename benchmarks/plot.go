package benchmarks

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strings"
)

// svg builds a drawing. Its colours are classes of page.html.
type svg struct {
	strings.Builder
	width, height float64
}

func newSVG(width, height float64, label string) *svg {
	s := &svg{width: width, height: height}
	fmt.Fprintf(s, `<svg viewBox="0 0 %g %g" style="min-width:%gpx" role="img" aria-label="%s">`, width, height, math.Min(width, 560), html.EscapeString(label))
	return s
}

func (s *svg) html() template.HTML { return template.HTML(s.String() + "</svg>") }

// text adds a text at a point. class has one of start, middle and end, and other classes.
func (s *svg) text(x, y float64, class, text string) {
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" class="%s">%s</text>`, x, y, class, html.EscapeString(text))
}

func (s *svg) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(s, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

// rect draws a rectangle with a title for the pointer.
func (s *svg) rect(x, y, w, h float64, class, title string) {
	fmt.Fprintf(s, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"><title>%s</title></rect>`, x, y, math.Max(w, 0), h, class, html.EscapeString(title))
}

func (s *svg) dot(x, y, r float64, class, title string) {
	fmt.Fprintf(s, `<circle cx="%.1f" cy="%.1f" r="%g" class="%s"><title>%s</title></circle>`, x, y, r, class, html.EscapeString(title))
}

func (s *svg) path(points []string, class string) {
	fmt.Fprintf(s, `<path d="M%s" class="%s"/>`, strings.Join(points, "L"), class)
}

func point(x, y float64) string { return fmt.Sprintf("%.1f %.1f", x, y) }

// drawInterval draws a mean with its interval on an axis from low to high.
func drawInterval(mean float64, ci [2]float64, low, high float64) template.HTML {
	s := newSVG(120, 18, fmt.Sprintf("%.3f, between %.3f and %.3f", mean, ci[0], ci[1]))
	at := func(v float64) float64 { return 6 + 108*(v-low)/math.Max(high-low, 1e-9) }
	s.line(6, 9, 114, 9, "axis")
	s.line(at(ci[0]), 9, at(ci[1]), 9, "whisker")
	s.dot(at(mean), 9, 4.5, "dot", fmt.Sprintf("%.4f", mean))
	return template.HTML(strings.Replace(string(s.html()), `style="min-width:120px" `, `width="120" height="18" `, 1))
}

// rankBand is a range of ranks with one colour in a bar, up to last.
type rankBand struct {
	last int
	name string
}

var rankBands = []rankBand{{1, "first"}, {3, "2 to 3"}, {5, "4 to 5"}, {10, "6 to 10"}, {runDepth, "11 to 100"}, {math.MaxInt, "not found"}}

// drawRanks draws the ranks of the first relevant documents of the queries.
func drawRanks(runs []*Run) template.HTML {
	const left, width, row = 190, 600, 30
	s := newSVG(left+width+10, float64(len(runs)*row+34), "rank of the first relevant document")
	for i, b := range rankBands {
		x := float64(left + i*100)
		s.rect(x, 4, 12, 12, fmt.Sprint("band", i), b.name)
		s.text(x+17, 14, "start soft", b.name)
	}
	for n, r := range runs {
		counts := make([]int, len(rankBands))
		for i := range r.Queries {
			counts[r.Queries[i].band()]++
		}
		y, x := float64(n*row+30), float64(left)
		s.text(left-10, y+15, "end", r.System)
		for i, c := range counts {
			w := width * float64(c) / float64(max(1, len(r.Queries)))
			s.rect(x, y, w-1, 20, fmt.Sprint("band", i), fmt.Sprintf("%s: %s, %d of %d queries", r.System, rankBands[i].name, c, len(r.Queries)))
			if w > 44 {
				s.text(x+w/2, y+14, fmt.Sprint("middle on", i), fmt.Sprintf("%.0f %%", 100*w/width))
			}
			x += w
		}
	}
	return s.html()
}

// band returns the index in rankBands of the rank of the first relevant document.
func (q *RunQuery) band() int {
	for i, d := range q.Ranking {
		if q.Relevant[d.ID] > 0 {
			return slices.IndexFunc(rankBands, func(b rankBand) bool { return i < b.last })
		}
	}
	return len(rankBands) - 1
}

// drawBudgets draws the recall within each budget, a line for each way of reading.
func drawBudgets(rows []budgetRow) template.HTML {
	low, high := math.Inf(1), 0.0
	for _, row := range rows {
		for _, b := range row.Cells {
			low, high = math.Min(low, float64(b.Tokens)), math.Max(high, float64(b.Tokens))
		}
	}
	if low >= high {
		return ""
	}
	const left, top, width, height = 60, 14, 520, 220
	s := newSVG(left+width+200, top+height+44, "recall within token budgets")
	x := func(tokens int) float64 {
		return left + width*math.Log(float64(tokens)/low)/math.Log(high/low)
	}
	y := func(share float64) float64 { return top + height*(1-share) }
	for tenth := 0; tenth <= 10; tenth += 2 {
		share := float64(tenth) / 10
		s.line(left, y(share), left+width, y(share), "axis")
		s.text(left-8, y(share)+4, "end soft", fmt.Sprintf("%d %%", 10*tenth))
	}
	var ends []float64 // positions of labels, so that they do not overlap
	for n, row := range rows {
		var points []string
		last := 0.0
		for _, b := range row.Cells {
			points = append(points, point(x(b.Tokens), y(b.Recall)))
			last = y(b.Recall)
			s.dot(x(b.Tokens), y(b.Recall), 4, fmt.Sprint("fill", n), fmt.Sprintf("%s, %d tokens: %.3f", row.System, b.Tokens, b.Recall))
			if n == 0 {
				s.text(x(b.Tokens), top+height+18, "middle soft", fmt.Sprint(b.Tokens))
			}
		}
		s.path(points, fmt.Sprint("curve stroke", n))
		for slices.ContainsFunc(ends, func(e float64) bool { return math.Abs(e-last) < 16 }) {
			last += 4
		}
		ends = append(ends, last)
		s.text(left+width+12, last+4, fmt.Sprint("start name", n), row.System)
	}
	s.text(left+width/2, top+height+38, "middle soft", "tokens that are read")
	return s.html()
}

// drawLatency draws the distribution of the times of each run on a logarithmic axis.
func drawLatency(runs []*Run) template.HTML {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r *Run) bool { return len(r.times()) < 2 })
	if len(runs) == 0 {
		return ""
	}
	low, high := math.Inf(1), 0.0
	for _, r := range runs {
		ms := r.times()
		low, high = math.Min(low, slices.Min(ms)), math.Max(high, slices.Max(ms))
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low)*2)/2), math.Pow(10, math.Ceil(math.Log10(high)*2+.01)/2)
	const left, width, row, bins = 190, 580, 54, 60
	bottom := float64(len(runs)*row + 10)
	s := newSVG(left+width+30, bottom+34, "times of searches")
	share := func(ms float64) float64 { return math.Log(ms/low) / math.Log(high/low) }
	for _, tick := range []float64{.1, .3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000} {
		if tick >= low*.99 && tick <= high*1.01 {
			at := left + width*share(tick)
			s.line(at, 6, at, bottom, "axis")
			s.text(at, bottom+16, "middle soft", fmt.Sprintf("%g ms", tick))
		}
	}
	for n, r := range runs {
		base := float64(n*row + row)
		counts := make([]float64, bins)
		for _, ms := range r.times() {
			counts[min(bins-1, max(0, int(share(ms)*bins)))]++
		}
		most := slices.Max(counts)
		points := []string{point(left, base)}
		for i, c := range counts {
			h := (row - 24) * c / most
			points = append(points, point(left+width*float64(i)/bins, base-h), point(left+width*float64(i+1)/bins, base-h))
		}
		s.path(append(points, point(left+width, base)), "area")
		l := r.Latency()
		for _, at := range []struct {
			name string
			ms   float64
		}{{"p50", l.P50}, {"p95", l.P95}} {
			x := left + width*share(at.ms)
			s.line(x, base-row+22, x, base, "mark")
			s.text(x, base-row+19, "middle small", fmt.Sprintf("%s %.1f", at.name, at.ms))
		}
		s.text(left-10, base-6, "end", r.System)
	}
	return s.html()
}

// drawAblations draws the effect of each variant, the largest loss first.
func drawAblations(all []Ablation) template.HTML {
	if len(all) == 0 {
		return ""
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Ablation) int { return cmp.Compare(a.Change, b.Change) })
	low, high := 0.0, 0.0
	for _, a := range all {
		low, high = math.Min(low, a.CI[0]), math.Max(high, a.CI[1])
	}
	const left, width, row = 190, 520, 30
	bottom := float64(len(all)*row + 8)
	s := newSVG(left+width+90, bottom+10, "change of nDCG@10")
	at := func(v float64) float64 { return left + width*(v-low)/math.Max(high-low, 1e-9) }
	for n, a := range all {
		y, class := float64(n*row+8), "worse"
		if a.Change > 0 {
			class = "better"
		}
		if a.CI[0] <= 0 && a.CI[1] >= 0 {
			class = "same"
		}
		s.rect(math.Min(at(0), at(a.Change)), y, math.Abs(at(a.Change)-at(0)), 18, class, fmt.Sprintf("%s: %+.4f, p %.4f", a.Variant, a.Change, a.P))
		s.line(at(a.CI[0]), y+9, at(a.CI[1]), y+9, "whisker")
		s.text(left-10, y+14, "end", a.Variant)
		s.text(left+width+12, y+14, "start", fmt.Sprintf("%+.3f", a.Change))
	}
	s.line(at(0), 2, at(0), bottom, "zero")
	return s.html()
}
