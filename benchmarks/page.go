package benchmarks

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"slices"
	"strings"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"share":  func(f float64) string { return fmt.Sprintf("%.3f", f) },
	"signed": func(f float64) string { return fmt.Sprintf("%+.3f", f) },
	"ms":     func(f float64) string { return fmt.Sprintf("%.1f", f) },
	"whole":  func(f float64) string { return fmt.Sprintf("%.0f", f) },
	"join":   func(s []string) string { return strings.Join(s, " or ") },
	"fill":   func(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) },
	"at":     func(percent float64) string { return fmt.Sprintf("%.2f%%", percent) },
}).Parse(pageText))

// pageData is the data of page.html.
type pageData struct {
	Main       RunSummary
	Documents  int
	Tiles      []tile
	Systems    []pageSystem
	Ranks      []chartRow
	BudgetRows []pageTable[BudgetReport]
	Latency    []chartRow
	Ablations  []chartRow
	Context    *ContextReport
	Groups     []pageTable[GroupReport]
	Worst      []WorstQuery
}

// tile is a figure with its name.
type tile struct{ Figure, Name, Note string }

type pageSystem struct {
	RunSummary
	Interval []mark // of nDCG@10
	Main     bool
}

// pageTable holds the rows of one name, such as a way of reading with its budgets.
type pageTable[R any] struct {
	Name string
	Rows []R
}

// Last is the last row, that of the largest budget.
func (t pageTable[R]) Last() R { return t.Rows[len(t.Rows)-1] }

// tablesOf divides rows where their name changes.
func tablesOf[R any](rows []R, name func(R) string) (tables []pageTable[R]) {
	for _, row := range rows {
		if n := len(tables); n == 0 || tables[n-1].Name != name(row) {
			tables = append(tables, pageTable[R]{Name: name(row)})
		}
		last := &tables[len(tables)-1]
		last.Rows = append(last.Rows, row)
	}
	return tables
}

// WritePage writes a self-contained HTML page about runs of the same queries. It compares
// them with the run of cairn's last mode.
func WritePage(file string, runs []*Run) error {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, newPage(runs)); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

func newPage(runs []*Run) *pageData {
	main := mainRun(runs)
	p := &pageData{Main: main.Summary(), Documents: main.Documents, Context: main.Context, Worst: main.worst(), Ablations: drawAblations(ablations(runs))}
	shown := slices.DeleteFunc(slices.Clone(runs), func(r *Run) bool { return r.Ablation })
	var low, high float64 = 1, 0
	for _, r := range shown {
		s := pageSystem{RunSummary: r.Summary(), Main: r == main}
		ci := s.Intervals[metricNames[0]]
		low, high = min(low, ci[0]), max(high, ci[1])
		p.Systems = append(p.Systems, s)
	}
	for i := range p.Systems {
		s, at := &p.Systems[i], scale(low, high)
		s.Interval = []mark{whisker(s.Intervals[metricNames[0]], at), {Class: "dot", X: at(s.NDCG10)}}
	}
	p.tiles(main.Budgets)
	p.Ranks, p.Latency = drawRanks(shown), drawLatency(shown)
	p.BudgetRows = tablesOf(main.Budgets, func(b BudgetReport) string { return b.System })
	p.Groups = slices.DeleteFunc(tablesOf(main.groups(), func(g GroupReport) string { return g.By }), func(t pageTable[GroupReport]) bool {
		return t.Name != "kind" && len(t.Rows) < 2
	})
	return p
}

// tiles adds the most important figures of the main run.
func (p *pageData) tiles(budgets []BudgetReport) {
	between := func(metric string) string {
		ci := p.Main.Intervals[metric]
		return fmt.Sprintf("95 %% between %.3f and %.3f", ci[0], ci[1])
	}
	p.Tiles = []tile{
		{fmt.Sprintf("%.3f", p.Main.NDCG10), "nDCG@10", between("ndcg@10")},
		{fmt.Sprintf("%.0f %%", 100*p.Main.Hit1), "right document first", between("hit@1")},
		{fmt.Sprintf("%.0f %%", 100*p.Main.Hit5), "right document among five", between("hit@5")},
	}
	if s := p.Main.Sections; s != nil {
		p.Tiles = append(p.Tiles, tile{fmt.Sprintf("%.0f %%", 100*s.Hit3), "right section among three", fmt.Sprintf("first: %.0f %%, of %d queries", 100*s.Hit1, s.Queries)})
	}
	for _, b := range budgets {
		if b.Tokens == 1000 && b.System == cairnReader {
			p.Tiles = append(p.Tiles, tile{fmt.Sprintf("%.0f %%", 100*b.Recall), "answered within 1,000 tokens", fmt.Sprintf("%.0f tokens up to the first right text", b.TokensToFirst)})
		}
	}
	if l := p.Main.Latency; l.P50 > 0 {
		p.Tiles = append(p.Tiles, tile{fmt.Sprintf("%.1f ms", l.P50), "median time of a search", fmt.Sprintf("95 %% within %.1f ms", l.P95)})
	}
}
