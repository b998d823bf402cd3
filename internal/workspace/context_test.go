package workspace

import (
	"math"
	"testing"

	"cairn/graphrank"
	"cairn/internal/usage"
	"cairn/retriever"
)

// TestContextBonus: what is in use was seen 3 times with a.md (twice after it and
// once before) and once with b.md, so their bonuses are .10·3/5 and .10·1/5.
func TestContextBonus(t *testing.T) {
	var g graphrank.Graph
	for _, e := range [][2]string{{"doc:in.md", "doc:a.md"}, {"doc:in.md", "doc:a.md"}, {"doc:a.md", "doc:in.md"}, {"doc:in.md", "doc:b.md"}, {"fs:read", "doc:c.md"}} {
		g.Observe(e[0], e[1], graphrank.Sequence)
	}
	paths := []string{"a.md", "b.md", "c.md", "in.md"}
	for name, c := range map[string]struct {
		inUse []string
		want  []float64
	}{
		"a document":      {[]string{"in.md"}, []float64{.06, .02, 0, 0}},
		"a section of it": {[]string{"in.md#head"}, []float64{.06, .02, 0, 0}},
		"its id":          {[]string{"doc:in.md"}, []float64{.06, .02, 0, 0}},
		"a tool":          {[]string{"fs:read"}, []float64{0, 0, .05, 0}},
		"the most counts": {[]string{"in.md", "a.md"}, []float64{.06, .02, 0, .075}},
		"never seen":      {[]string{"new.md", "no:tool"}, nil},
		"half never seen": {[]string{"new.md", "fs:read"}, []float64{0, 0, .05, 0}},
	} {
		got := contextBonus(&g, c.inUse, paths)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-12 {
				t.Errorf("%s: %v, want %v", name, got, c.want)
				break
			}
		}
	}
}

// TestContextLiftsWhatWasUsedTogether searches a real folder: a document that
// was used with the one in use rises by its bonus, explain adds up, and
// without a context or a graph nothing changes.
func TestContextLiftsWhatWasUsedTogether(t *testing.T) {
	sel := folder(t)
	w := open(t, sel, Owning, hashed())
	index(t, w, IndexRequest{})
	ask := func(inUse ...string) *retriever.Answer {
		t.Helper()
		a, err := w.Search(t.Context(), retriever.Query{Text: "login", Limit: 50, Explain: true, Context: inUse})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	cold := ask()
	if len(cold.Results) == 0 {
		t.Fatal("nothing is found")
	}
	found := cold.Results[len(cold.Results)-1].Path
	for i, r := range ask("other.md").Results {
		if r.Score != cold.Results[i].Score || r.Explain.Graph != 0 {
			t.Errorf("a cold graph changes %s by %g", r.Path, r.Explain.Graph)
		}
	}
	box := openToolbox(t, sel.Root)
	if _, err := box.Learn(t.Context(), usage.Trace{Calls: []usage.Call{{Tool: "doc:other.md"}, {Tool: usage.DocumentID(found)}}}); err != nil {
		t.Fatal(err)
	}
	for i, r := range ask().Results {
		if r.Score != cold.Results[i].Score {
			t.Errorf("without a context %s changes", r.Path)
		}
	}
	for _, r := range ask("other.md").Results {
		want := 0.0
		if r.Path == found {
			want = ContextLimit / 2
		}
		if math.Abs(r.Explain.Graph-want) > 1e-6 || math.Abs(r.Explain.Recompute()-r.Score) > 1e-9 {
			t.Errorf("%s: graph %g, want %g; components add up to %g, the score is %g", r.Path, r.Explain.Graph, want, r.Explain.Recompute(), r.Score)
		}
	}
}
