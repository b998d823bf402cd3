package retriever

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"cairn/internal/testutil"
	"cairn/models/bpe"
)

// TestBudgetIsKept is the property over all budgets: no answer is larger than
// asked for, and every hit is a result or omitted while there is room to say so.
func TestBudgetIsKept(t *testing.T) {
	files := map[string]string{}
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 60 {
		files[fmt.Sprintf("part/doc%02d.md", i)] = testutil.Markdown(r, 200+r.IntN(9000))
	}
	f := open(t, files, nil)
	count := (&bpe.Counter{}).CountTokens
	for budget := MinBudget; budget <= 20_000; budget += 1 + budget/9 {
		for _, query := range []string{"token budget", "network policy of the cluster", "検索"} {
			a := f.search(Query{Text: query, Limit: 12, MaxTokens: budget, Explain: budget%2 == 0})
			if n := count(renderJSON(a)[0]); n > budget {
				t.Errorf("%q: %d tokens, budget %d", query, n, budget)
			}
			for i, result := range a.Results {
				if result.Content == "" {
					t.Errorf("%q with budget %d: result %d has no text", query, budget, i)
				}
			}
			if budget >= 1500 && len(a.Results)+len(a.Omitted) != min(12, a.TotalCount) {
				t.Errorf("%q with budget %d: %d results and %d omitted of %d", query, budget, len(a.Results), len(a.Omitted), a.TotalCount)
			}
		}
	}
}

// TestBudgetOrder: the first hit comes whole if it can, in part if it cannot,
// and a short one after it still gets in.
func TestBudgetOrder(t *testing.T) {
	long := "# Needle\n\n" + strings.Repeat("The needle is in this heap of hay. ", 150) + "\n"
	f := open(t, map[string]string{"long.md": long, "short.md": "# Hay\n\nA needle in hay.\n"}, nil)
	for _, c := range []struct {
		budget       int
		longContent  string // "whole", "part" or ""
		shortPresent bool
	}{{5000, "whole", true}, {1000, "part", true}, {300, "", true}} {
		a := f.search(Query{Text: "needle heap", MaxTokens: c.budget})
		got, short := "", false
		for _, r := range a.Results {
			switch {
			case r.Path == "short.md":
				short = true
			case len(r.Content) > 5000:
				got = "whole"
			case strings.HasPrefix(strings.TrimSpace(long), r.Content) || strings.Contains(long, r.Content):
				got = "part"
			}
		}
		if got != c.longContent || short != c.shortPresent {
			t.Errorf("budget %d: long.md is %q, short.md there: %v; want %q and %v; omitted %v", c.budget, got, short, c.longContent, c.shortPresent, a.Omitted)
		}
		if c.longContent == "" && (len(a.Omitted) != 1 || a.Omitted[0].Path != "long.md#needle" || a.Omitted[0].Tokens < 1000) {
			t.Errorf("budget %d: omitted %+v", c.budget, a.Omitted)
		}
	}
}
