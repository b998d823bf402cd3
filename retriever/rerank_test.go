package retriever

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/models"
)

// wordReranker gives a text the number of times that it holds a word, less 2. It waits
// before each text.
type wordReranker struct {
	word string
	wait time.Duration
	read []string // the texts of the last call
	n    int      // calls
	err  error
}

func (r *wordReranker) Rerank(ctx context.Context, _ string, texts []string) ([]float64, error) {
	r.read = texts
	r.n++
	scores, done := make([]float64, len(texts)), make([]bool, len(texts))
	for i, text := range texts {
		if r.wait > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(r.wait):
			}
		}
		if ctx.Err() != nil {
			break
		}
		scores[i], done[i] = 8*float64(strings.Count(text, r.word)-2), true
	}
	if r.err != nil {
		return nil, r.err
	}
	return models.Scored(ctx, scores, done)
}

func (r *wordReranker) Close() error { return nil }

// rerankFiles are pages of which "tea" finds a.md first and c.md last.
var rerankFiles = map[string]string{
	"a.md": "# Leaves\n\nTea in the afternoon, and tea in the morning.\n",
	"b.md": "# Cups\n\nTea in large cups is better than tea in bowls.\n\n## Sorts\n\nBlack tea is the best, best, best of all kinds of tea.\n",
	"c.md": "# Kettles\n\nA kettle boils water, which makes tea; the best kettle is the best start of a day with friends and books.\n",
}

func openReranked(t *testing.T, r *wordReranker, budget time.Duration) *folder {
	return open(t, rerankFiles, &Options{RerankBudget: budget, Reranker: func() (models.Reranker, error) { return r, nil }})
}

func TestRerank(t *testing.T) {
	plain := open(t, rerankFiles, nil).search(Query{Text: "tea", Mode: Keyword, Explain: true})
	if plain.Results[0].Path != "a.md" || plain.Results[0].Explain.Logit != nil {
		t.Fatalf("without a re-ranker: %v, logit %v", paths(plain), plain.Results[0].Explain.Logit)
	}
	r := &wordReranker{word: "best"}
	f := openReranked(t, r, 0)
	a := f.search(Query{Text: "tea", Mode: Keyword, Explain: true})
	if got, want := paths(a), []string{"b.md", "a.md", "c.md"}; !slices.Equal(got, want) {
		t.Errorf("re-ranked: %v, want %v", got, want)
	}
	if a.Results[0].Anchor != "sorts" {
		t.Errorf("b.md shows %q, want the section that the re-ranker prefers", a.Results[0].Anchor)
	}
	for i, want := range []float64{8, -16, 0} {
		e := a.Results[i].Explain
		if e.Logit == nil || *e.Logit != want || math.Abs(e.Recompute()-a.Results[i].Score) > 1e-12 {
			t.Errorf("%s: logit %v, parts add up to %v of %v", a.Results[i].Path, e.Logit, e.Recompute(), a.Results[i].Score)
		}
		if top := plain.Results[0].Score; a.Results[i].Score <= 0 || a.Results[i].Score > top+1e-12 {
			t.Errorf("%s has %v, want at most %v as before", a.Results[i].Path, a.Results[i].Score, top)
		}
	}
	if len(r.read) != 4 || !strings.HasPrefix(r.read[0], "Leaves\n") || len(a.Degraded) != 0 {
		t.Errorf("read %q, degraded %v, want a passage of each page and another of b.md", r.read, a.Degraded)
	}
	trace, err := f.Explain(t.Context(), Query{Text: "tea", Mode: Keyword}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if g := trace.Rerank; g == nil || g.Passages != 4 || g.Read != 4 || len(g.Best) != 3 || g.Best[0] != (Reranked{1, 2, 8, "b.md"}) {
		t.Errorf("trace: %+v", trace.Rerank)
	}
}

// TestRerankOnce: where the first hits are of too few documents, the search asks for more
// before anything is read again.
func TestRerankOnce(t *testing.T) {
	r := &wordReranker{word: "best"}
	f := open(t, rerankFiles, &Options{Depth: 2, Reranker: func() (models.Reranker, error) { return r, nil }})
	trace, err := f.Explain(t.Context(), Query{Text: "tea", Mode: Keyword}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(trace.Answer.Results) != 3 || trace.Dropped.Rounds < 2 || r.n != 1 {
		t.Errorf("%d results of %d rounds, re-ranked %d times; want 3 of 2 or more, re-ranked once", len(trace.Answer.Results), trace.Dropped.Rounds, r.n)
	}
}

// TestRerankKeepsItsTime checks that documents that the re-ranker does not read in time
// keep their place, and that the answer reports this.
func TestRerankKeepsItsTime(t *testing.T) {
	f := openReranked(t, &wordReranker{word: "best", wait: time.Hour}, 20*time.Millisecond)
	a := f.search(Query{Text: "tea", Mode: Keyword})
	if got := paths(a); got[0] != "a.md" || !slices.Contains(a.Degraded, "rerank") {
		t.Errorf("without time: %v, degraded %v, want the order of the legs and a note", got, a.Degraded)
	}
}

func TestRerankerFails(t *testing.T) {
	f := openReranked(t, &wordReranker{err: errors.New("no such operator")}, 0)
	if _, err := f.Search(t.Context(), Query{Text: "tea", Mode: Keyword}); err == nil || !strings.Contains(err.Error(), "no such operator") {
		t.Errorf("a re-ranker that fails: %v", err)
	}
	broken := open(t, rerankFiles, &Options{Reranker: func() (models.Reranker, error) { return nil, errors.New("no such folder") }})
	if _, err := broken.Search(t.Context(), Query{Text: "tea"}); err == nil || !strings.Contains(err.Error(), "no such folder") {
		t.Errorf("a re-ranker that does not open: %v", err)
	}
}
