package benchmarks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// setsFolder has a file for each set: what cairn bench docs --json printed.
const setsFolder = "runs/2026-11-22-sets"

// budgetsFolder has a later run of each set, of which only the budgets are used.
const budgetsFolder = "runs/2026-11-23-budgets"

// setNames are the sets in the order of the tables.
var setNames = []string{"scifact/train", "cranfield/test", "cacm/test", "cisi/test", "npl/test", "anthropic-docs/test", "k8s-docs/kubefix", "k8s-docs/realistic", "nl2bash-tldr/dev"}

// tables are the blocks of Markdown files that are made from the recorded runs, by the name
// that stands in front of each: <!-- figures: NAME --> ... <!-- end of figures -->.
var tables = map[string]func([]*DocsReport) string{
	"summary": summaryTable, "sets": setTable, "systems": systemTable, "times": timeTable,
	"budgets": budgetTable, "tokens": tokenTable, "ablations": ablationTable,
}

var figureBlock = regexp.MustCompile(`(?s)<!-- figures: (\w+) -->\n.*?<!-- end of figures -->`)

// TestFigures: the figures that the README and the page about measurements show are those
// of the recorded runs.
func TestFigures(t *testing.T) {
	reports := readReports(t)
	used := map[string]bool{}
	for _, file := range []string{"../README.md", "README.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := figureBlock.ReplaceAllStringFunc(string(text), func(block string) string {
			name := figureBlock.FindStringSubmatch(block)[1]
			table, ok := tables[name]
			if !ok {
				t.Errorf("%s: unknown figures %q", file, name)
				return block
			}
			used[name] = true
			return "<!-- figures: " + name + " -->\n" + table(reports) + "<!-- end of figures -->"
		})
		compareGolden(t, file, got)
	}
	if len(used) != len(tables) {
		t.Errorf("%v are shown, want all of %v", slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(tables)))
	}
}

func readReport(t *testing.T, file string) *DocsReport {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := &DocsReport{}
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return r
}

func readReports(t *testing.T) (reports []*DocsReport) {
	files, err := filepath.Glob(setsFolder + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		r := readReport(t, file)
		r.Budgets = readReport(t, filepath.Join(budgetsFolder, filepath.Base(file))).Budgets
		reports = append(reports, r)
	}
	at := func(r *DocsReport) int { // other folders come last
		return cmp.Or(slices.Index(setNames, r.Dataset+"/"+r.Split)+1, len(setNames)+1)
	}
	slices.SortStableFunc(reports, func(a, b *DocsReport) int { return at(a) - at(b) })
	return reports
}

// publicSets leaves out those that were made from a folder itself.
func publicSets(reports []*DocsReport) []*DocsReport {
	return slices.DeleteFunc(slices.Clone(reports), func(r *DocsReport) bool { return len(r.Groups) > 0 })
}

func (r *DocsReport) system(name string) *RunSummary {
	for i := range r.Systems {
		if r.Systems[i].System == name {
			return &r.Systems[i]
		}
	}
	return &RunSummary{}
}

// figure writes a share as the other pages do: .738.
func figure(f float64) string { return strings.TrimPrefix(fmt.Sprintf("%.3f", f), "0") }

// row writes a row of a table.
func row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

func header(cells ...string) string {
	return row(cells...) + "|" + strings.Repeat("---|", len(cells)) + "\n"
}

func summaryTable(reports []*DocsReport) string {
	text := header("what", "figure")
	for _, r := range publicSets(reports) {
		if r.Dataset == "anthropic-docs" || r.Dataset == "k8s-docs" {
			text += row("nDCG@10, hybrid (keyword, semantic), "+r.Dataset+" "+r.Split,
				fmt.Sprintf("%s (%s, %s)", figure(r.system("hybrid").NDCG10), figure(r.system("keyword").NDCG10), figure(r.system("semantic").NDCG10)))
		}
	}
	for _, r := range publicSets(reports) {
		if r.Dataset == "cranfield" || r.Split == "kubefix" {
			var shares []string
			for _, system := range readerNames(r) {
				for _, b := range r.Budgets {
					if b.System == system && b.Tokens == 1000 {
						shares = append(shares, figure(b.Recall)+" "+system)
					}
				}
			}
			text += row("A right document within 1,000 tokens, "+r.Dataset+" "+r.Split, strings.Join(shares, ", "))
		}
	}
	recorded, err := os.ReadFile("runs/recorded.tsv")
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(recorded)) {
		if cells := strings.Split(strings.TrimSpace(line), "\t"); len(cells) == 3 && line[0] != '#' {
			text += row(cells[0], cells[1])
		}
	}
	return text
}

func setTable(reports []*DocsReport) string {
	text := header("set", "queries", "documents", "keyword", "semantic", "hybrid", "95 %", "MRR", "hit@1", "hit@5", "recall@100")
	for _, r := range publicSets(reports) {
		h := r.system("hybrid")
		ci := h.Intervals["ndcg@10"]
		text += row(r.Dataset+"/"+r.Split, fmt.Sprint(r.Queries), fmt.Sprint(r.Documents), figure(r.system("keyword").NDCG10), figure(r.system("semantic").NDCG10),
			"**"+figure(h.NDCG10)+"**", figure(ci[0])+" to "+figure(ci[1]), figure(h.MRR), figure(h.Hit1), figure(h.Hit5), figure(h.Recall100))
	}
	return text
}

// otherSystems are those that adapters measured.
var otherSystems = []string{"bm25s", "chroma", "qdrant-local", "ripgrep"}

func systemTable(reports []*DocsReport) string {
	return acrossSystems(reports, func(s *RunSummary) string { return figure(s.NDCG10) })
}

func timeTable(reports []*DocsReport) string {
	return acrossSystems(reports, func(s *RunSummary) string { return fmt.Sprintf("%.1f; %.1f", s.Latency.P50, s.Latency.P95) })
}

func acrossSystems(reports []*DocsReport, cell func(*RunSummary) string) string {
	names := append([]string{"hybrid", "keyword", "semantic"}, otherSystems...)
	heads := slices.Clone(names)
	for i := range 3 {
		heads[i] = "cairn, " + heads[i]
	}
	text := header(append([]string{"set"}, heads...)...)
	for _, r := range publicSets(reports) {
		cells := []string{r.Dataset + "/" + r.Split}
		for _, name := range names {
			cells = append(cells, cell(r.system(name)))
		}
		text += row(cells...)
	}
	return text
}

// readerNames are the ways of reading that a report has, in its order.
func readerNames(r *DocsReport) (names []string) {
	for _, b := range r.Budgets {
		if !slices.Contains(names, b.System) {
			names = append(names, b.System)
		}
	}
	return names
}

func budgetTable(reports []*DocsReport) string {
	return acrossBudgets(reports, []int{500, 1000, 2000, 4000}, func(b BudgetReport) string { return figure(b.Recall) })
}

func tokenTable(reports []*DocsReport) string {
	return acrossBudgets(reports, []int{4000}, func(b BudgetReport) string { return fmt.Sprintf("%.0f", b.TokensToFirst) })
}

// acrossBudgets has a row for each set and a column for each way of reading, with the cells
// of all budgets.
func acrossBudgets(reports []*DocsReport, budgets []int, cell func(BudgetReport) string) string {
	text := ""
	for _, r := range reports {
		names := readerNames(r)
		if text == "" {
			text = header(append([]string{"set"}, names...)...)
		}
		cells := []string{r.Dataset + "/" + r.Split}
		for _, name := range names {
			var of []string
			for _, b := range r.Budgets {
				if b.System == name && slices.Contains(budgets, b.Tokens) {
					of = append(of, cell(b))
				}
			}
			cells = append(cells, strings.Join(of, " "))
		}
		text += row(cells...)
	}
	return text
}

func ablationTable(reports []*DocsReport) string {
	var names []string
	for _, r := range reports {
		for _, a := range r.Ablations {
			if !slices.Contains(names, a.Variant) {
				names = append(names, a.Variant)
			}
		}
	}
	text := header(append([]string{"set"}, names...)...)
	for _, r := range reports {
		cells := []string{r.Dataset + "/" + r.Split}
		for _, name := range names {
			change := ""
			for _, a := range r.Ablations {
				if a.Variant == name {
					change = strings.Replace(fmt.Sprintf("%+.3f", a.Change), "0.", ".", 1)
					if a.CI[0] > 0 || a.CI[1] < 0 {
						change = "**" + change + "**"
					}
				}
			}
			cells = append(cells, change)
		}
		text += row(cells...)
	}
	return text
}
