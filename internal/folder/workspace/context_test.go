package workspace

import (
	"math"
	"testing"

	"cairn/graphrank"
	"cairn/internal/folder/index"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/usage"
	"cairn/retriever"
)

// TestContextLiftsWhatWasUsedTogether searches a real folder: a document that
// was used with the one in use rises by its bonus, explain adds up, and
// without a context or a graph nothing changes.
func TestContextLiftsWhatWasUsedTogether(t *testing.T) {
	sel := folder(t)
	w := open(t, sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	ask := func(inUse ...string) *retriever.Answer {
		t.Helper()
		a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login", Limit: 50, Explain: true, Context: inUse}, nil)
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
	box := toolsOf(t, w)
	if _, err := toolbox.LearnOp.Call(t.Context(), box, []usage.Trace{{Calls: []usage.Call{{Tool: "doc:other.md"}, {Tool: graphrank.DocumentID(found)}}}}, nil); err != nil {
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
			want = retriever.CoUsageLimit / 2
		}
		if math.Abs(r.Explain.Graph-want) > 1e-6 || math.Abs(r.Explain.Recompute()-r.Score) > 1e-9 {
			t.Errorf("%s: graph %g, want %g; components add up to %g, the score is %g", r.Path, r.Explain.Graph, want, r.Explain.Recompute(), r.Score)
		}
	}
}
