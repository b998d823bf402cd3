package retriever

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/models/bpe"
)

// TestBudgetIsKept checks, for all budgets, that the texts of an answer do not exceed the
// budget, that the envelope is small, and that every hit is a result or omitted.
func TestBudgetIsKept(t *testing.T) {
	f := open(t, randomFiles(60), nil)
	count := (&bpe.Counter{}).CountTokens
	for budget := MinBudget; budget <= MaxBudget; budget += 1 + budget/9 {
		for _, query := range []string{"token budget", "network policy of the cluster", "検索"} {
			a := f.search(Query{Text: query, Limit: 12, MaxTokens: budget})
			text, texts := 0, 0
			for i, result := range a.Results {
				if result.Content == "" {
					t.Errorf("%q with budget %d: result %d has no text", query, budget, i)
				}
				text += count(result.Content)
				texts++
				for _, more := range result.More {
					text += count(more.Content)
					texts++
				}
			}
			if text > budget || text != a.Budget.Text {
				t.Errorf("%q with budget %d: %d tokens of text, reported as %d", query, budget, text, a.Budget.Text)
			}
			if whole := count(renderJSON(a)); whole > MaxBudget+20 || whole > text+200+160*texts {
				t.Errorf("%q with budget %d: %d tokens, %d of them in %d texts", query, budget, whole, text, texts)
			}
			if len(a.Results)+a.OmittedCount != min(12, a.TotalCount) || len(a.Omitted) > 3 {
				t.Errorf("%q with budget %d: %d results and %d omitted of %d", query, budget, len(a.Results), a.OmittedCount, a.TotalCount)
			}
		}
	}
}

func randomFiles(n int) map[string]string {
	files := map[string]string{}
	r := rand.New(rand.NewPCG(5, 6))
	for i := range n {
		files[fmt.Sprintf("part/doc%02d.md", i)] = testutil.Markdown(r, 200+r.IntN(9000))
	}
	return files
}

// TestBudgetIsSpent: an answer leaves little of the budget while there is text of the
// hits, and a larger limit does not lose hits.
func TestBudgetIsSpent(t *testing.T) {
	f := open(t, randomFiles(60), nil)
	for _, budget := range []int{500, 1000, 3000} {
		var first []string
		for _, limit := range []int{0, 10, 50} {
			a := f.search(Query{Text: "network policy of the cluster", Limit: limit, MaxTokens: budget})
			if a.Budget.Text < budget*9/10 {
				t.Errorf("budget %d, limit %d: %d tokens of text", budget, limit, a.Budget.Text)
			}
			var paths []string
			for _, r := range a.Results[:min(budget/200, 10, len(a.Results))] {
				paths = append(paths, r.Path)
			}
			if first == nil {
				first = paths
			} else if !slices.Equal(paths, first) {
				t.Errorf("budget %d, limit %d: %v, with another limit %v", budget, limit, paths, first)
			}
		}
	}
}

// TestBudgetOrder: the first hit has its whole section if that and a passage of
// the second fit, else a part.
func TestBudgetOrder(t *testing.T) {
	long := "# Needle\n\n" + strings.Repeat("The needle is in this heap of hay.\n", 150)
	f := open(t, map[string]string{"long.md": long, "short.md": "# Hay\n\nA needle in hay.\n"}, nil)
	for _, c := range []struct {
		budget      int
		longContent string // "whole" or "part"
	}{{5000, "whole"}, {1000, "part"}, {300, "part"}} {
		a := f.search(Query{Text: "needle heap", MaxTokens: c.budget})
		if len(a.Results) != 2 || a.Results[0].Path != "long.md" || a.Results[1].Path != "short.md" {
			t.Fatalf("budget %d: %+v", c.budget, a.Results)
		}
		r := a.Results[0]
		got := "part"
		if r.Content == strings.TrimSpace(long) {
			got = "whole"
		}
		if got != c.longContent || !strings.Contains(long, r.Content) {
			t.Errorf("budget %d: long.md is %q, want %q:\n%s", c.budget, got, c.longContent, r.Content)
		}
		lines := strings.Split(long, "\n")[r.Passage.Start-1 : r.Passage.End]
		if strings.Join(lines, "\n") != r.Content {
			t.Errorf("budget %d: lines %+v are not those of the text", c.budget, r.Passage)
		}
	}
}

// TestBudgetSkipsWhatRepeats: a passage that two long sections share is given once.
func TestBudgetSkipsWhatRepeats(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shared := "## Rotating keys\n\n" + strings.Repeat("Rotate the signing keys every ninety days and keep the old ones. ", 12) + "\n\n"
	f := open(t, map[string]string{
		"a.md": "# Handbook\n\n" + shared + testutil.Sentence(r, 2000) + "\n",
		"b.md": "# Copy\n\n" + strings.ReplaceAll(shared, "Rotate", "*Rotate*") + testutil.Sentence(r, 2000) + "\n",
	}, nil)
	a := f.search(Query{Text: "rotate signing keys", MaxTokens: 500})
	if len(a.Results) != 1 || len(a.Results[0].Duplicates) != 1 || a.OmittedCount != 0 {
		t.Errorf("%d results, %d omitted: %+v", len(a.Results), a.OmittedCount, a.Results)
	}
	if all := f.search(Query{Text: "rotate signing keys"}); len(all.Results) != 2 {
		t.Errorf("without a budget: %d results, want both", len(all.Results))
	}
}

// TestBudgetHoldsFurtherSections: within a budget an answer holds the text of several
// sections of one document, each once, and less of them than of the best section of
// another document that matches as well.
func TestBudgetHoldsFurtherSections(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	section := func(heading, sentence string) string {
		return "## " + heading + "\n\n" + sentence + " " + testutil.Sentence(r, 700) + "\n\n"
	}
	manual := "# Manual\n\nAbout the pump.\n\n" +
		section("Cleaning the valve", "Clean the valve of the pump with water.") +
		section("Replacing the valve", "Replace the valve of the pump when it leaks.") +
		section("Invoices", "An invoice is sent each month.")
	f := open(t, map[string]string{"manual.md": manual, "other.md": "# Other\n\n" + testutil.Sentence(r, 900) + "\n"}, nil)
	for _, budget := range []int{600, 1500, 4000} {
		a := f.search(Query{Text: "valve of the pump", MaxTokens: budget})
		given := ""
		for _, result := range a.Results {
			if result.Path == "manual.md" {
				given += result.Content
				for _, more := range result.More {
					given += more.Content
					lines := strings.Split(manual, "\n")[more.Passage.Start-1 : more.Passage.End]
					if !strings.Contains(strings.Join(lines, "\n"), more.Content) {
						t.Errorf("budget %d: lines %+v are not those of %q", budget, *more.Passage, more.Content)
					}
				}
			}
		}
		for _, sentence := range []string{"Clean the valve of the pump with water.", "Replace the valve of the pump when it leaks."} {
			if n := strings.Count(given, sentence); n != 1 {
				t.Errorf("budget %d: the answer has %q %d times:\n%s", budget, sentence, n, given)
			}
		}
	}
}

// TestBudgetGivesNoScraps: a hit for which only a few words fit is omitted.
func TestBudgetGivesNoScraps(t *testing.T) {
	files := randomFiles(60)
	f := open(t, files, nil)
	count := (&bpe.Counter{}).CountTokens
	for budget := 200; budget < 1200; budget += 7 {
		a := f.search(Query{Text: "network policy of the cluster", MaxTokens: budget})
		for _, result := range a.Results {
			if n := count(result.Content); n < leastPassage && !strings.Contains(files[result.Path], result.Content+"\n") {
				t.Errorf("budget %d: %s has %d tokens: %q", budget, result.Path, n, result.Content)
			}
		}
	}
}

// TestDefaultAnswerEndsSections: an answer as text without a budget gives whole sections if
// they fit, although each is longer than its share.
func TestDefaultAnswerEndsSections(t *testing.T) {
	section := strings.Repeat("The needle is in this heap of hay.\n", 32)
	f := open(t, map[string]string{"a.md": "# Needle\n\n" + section + "The first end.\n", "b.md": "# Heap\n\n" + section + "The second end.\n"}, nil)
	a := f.search(Query{Text: "needle heap", AsText: true})
	for _, end := range []string{"The first end.", "The second end."} {
		if !strings.Contains(a.Text(), end) {
			t.Errorf("the answer does not have %q:\n%s", end, a.Text())
		}
	}
}

// TestDefaultAnswerHasCode: if the best text is that of a document, an answer of default size
// also has the best text of source code other than tests, if that is not far from it, and keeps
// the documents near the best.
func TestDefaultAnswerHasCode(t *testing.T) {
	f := open(t, map[string]string{
		"docs/a.md":    "# Waiting\n\nThe pool waits for a lease.\n\n" + strings.Repeat("The lease of another owner ends. ", 100),
		"docs/b.md":    "# Leases\n\nA pool waits for its lease.\n\n" + strings.Repeat("The owner renews it in time. ", 100),
		"pool.go":      "package pool\n\n// park stops a caller until there is room again, which it learns from its line of\n// callers, or until shutdown begins, whichever is earlier. It waits in steps.\nfunc park() {}\n",
		"pool_test.go": "package pool\n\n// TestPark waits for a lease of the pool.\nfunc TestPark() {}\n",
		"hour.go":      "package pool\n\n// hour waits.\nfunc hour() {}\n",
	}, nil)
	for query, want := range map[string]string{
		"what waits for the lease of a pool": "docs/a.md#waiting docs/b.md#leases pool.go#park",
		"when does an owner renew a lease":   "docs/b.md#leases",
		"park waits":                         "pool.go#park",
	} {
		var got []string
		for _, r := range f.search(Query{Text: query, Mode: Keyword, AsText: true}).Results {
			if r.Content != "" {
				got = append(got, r.Place())
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%q: texts of %v, want %s", query, got, want)
		}
	}
}

// TestLinesBeginAStatement: the lines of a long symbol do not begin within a call, an expression or
// a comment.
func TestLinesBeginAStatement(t *testing.T) {
	body := strings.Repeat("\tcount++\n", 90)
	for _, text := range []string{
		"\tsubmit(\n\t\tlease,\n\t\tdeadline,\n\t)\n",
		"\t// Nothing is known.\n\t// The lease has a deadline.\n",
		"\ttotal := size +\n\t\tlease.deadline\n",
		"\tpool.\n\t\tlease(deadline)\n",
		"\tpool\n\t\t.lease(deadline)\n",
	} {
		f := open(t, map[string]string{"pool.go": "package pool\n\nfunc park() {\n" + body + text + body + "}\n"}, nil)
		got := f.search(Query{Text: "lease deadline", Mode: Keyword, MaxTokens: 200}).Results[0].Content
		if begin, _, _ := strings.Cut(got, "\n"); !strings.Contains(got, "deadline") || strings.Contains(begin, "lease") {
			t.Errorf("%q: begins with %q", text, begin)
		}
	}
}

// TestLinesOfASymbol: of a symbol that is too long for its share, an answer gives the lines with the
// words of the query, and the beginning if none has more of them.
func TestLinesOfASymbol(t *testing.T) {
	body := strings.Repeat("\tcount++ // as before\n", 40)
	source := "package pool\n\nfunc park() {\n" + body + "\tif deadline.Passed() {\n\t\treturn errLate // the lease was revoked\n\t}\n" + body + "}\n"
	f := open(t, map[string]string{"pool.go": source}, nil)
	for query, want := range map[string]string{
		"park deadline of a revoked lease": "deadline.Passed",
		"park":                             "func park",
	} {
		a := f.search(Query{Text: query, Mode: Keyword, MaxTokens: 200})
		if len(a.Results) == 0 || !strings.Contains(a.Results[0].Content, want) {
			t.Errorf("%q: no %q in %+v", query, want, a.Results)
		}
		if got := a.Budget.Text; got > 200 {
			t.Errorf("%q: %d tokens", query, got)
		}
	}
}
