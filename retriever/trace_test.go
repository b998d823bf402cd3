package retriever

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cairn/internal/base/observe"
)

var traceFiles = map[string]string{
	"rotate.md": "# Rotating a token\n\nCreate the new token beside the old token and rotate once a quarter.\n",
	"token.md":  "# Tokens\n\nA token opens the door. Never share a token. Whoever holds a token is let in by the porter, who asks for nothing else, writes the hour into the book at the gate and hands the token back to whoever has come, unless it is old or broken.\n\n## Lost\n\nA lost token is revoked. Whoever has lost a token tells the porter at once, by day or by night, and gets a new token in the morning from the office on the second floor, against a signature and a small fee that goes into the box for the children.\n",
	"copy.md":   "# Tokens\n\nA token opens the door. Never share a token. Whoever holds a token is let in by the porter, who asks for nothing else, writes the hour into the book at the gate and hands the token back to whoever has come, unless it is old or broken.\n\n## Lost\n\nA lost token is revoked. Whoever has lost a token tells the porter at once, by day or by night, and gets a new token in the morning from the office on the second floor, against a signature and a small fee that goes into the box for the children.\n",
	"garden.md": "# Garden\n\nRoses want water in the morning.\n",
}

// lifter lifts one document.
type lifter string

func (l lifter) Bonus(_ Query, paths []string) []float64 {
	bonus := make([]float64, len(paths))
	for i, p := range paths {
		if p == string(l) {
			bonus[i] = 1
		}
	}
	return bonus
}

// texts returns the number of texts in an answer within a budget.
func texts(a *Answer) int {
	n := len(a.Results)
	for i := range a.Results {
		n += len(a.Results[i].More)
	}
	return n
}

// TestTrace follows one search through all of its steps and recomputes its scores.
func TestTrace(t *testing.T) {
	f := open(t, traceFiles, &Options{Reweigher: lifter("garden.md"), ReweighLimit: .04})
	q := Query{Text: "  rotate a token ", MaxTokens: 900, Context: []string{"x"}}
	w, err := f.Explain(t.Context(), q, 3)
	must(t, err)
	plain, err := f.Search(t.Context(), q)
	must(t, err)
	if diff := cmp.Diff(plain, w.Answer, cmpopts.IgnoreUnexported(Result{}, SectionRef{}), cmpopts.IgnoreFields(Result{}, "Explain")); diff != "" {
		t.Errorf("the answer is not that of a search (-want +got)\n%s", diff)
	}
	if w.Query != "rotate a token" || w.Mode != Hybrid || w.Analysis.Plain != w.Query || w.Analysis.Phrases || w.Analysis.Excludes || w.Analysis.Near {
		t.Errorf("query %q, mode %s, analysis %+v", w.Query, w.Mode, w.Analysis)
	}
	var terms []string
	for _, term := range w.Analysis.Terms {
		terms = append(terms, term.Term)
	}
	if !slices.Contains(terms, "rotat") || !slices.Contains(terms, "token") || w.Analysis.Chunks != 6 {
		t.Errorf("terms %v of %d chunks, want rotat and token of 6", w.Analysis.Terms, w.Analysis.Chunks)
	}
	e := w.Embedding
	if e == nil || e.Text != w.Query || e.Cached || e.Model != f.embedder.Description().ID || e.Dimension != f.embedder.Description().Dimension || e.Problem != "" {
		t.Errorf("embedding %+v", e)
	}
	if k := w.Keyword; k == nil || k.Asked != DefaultDepth || k.Found < 4 || len(k.Best) != 3 || k.Best[0].Normalised != 1 || k.Best[0].Score != w.Blend.BestBM25 {
		t.Errorf("keyword leg %+v, want three of at least four hits and the first at 1", k)
	} else if got := k.Best[1].Score / w.Blend.BestBM25; got != k.Best[1].Normalised {
		t.Errorf("the second hit's share is %g, want its BM25 over the best, %g", k.Best[1].Normalised, got)
	}
	v := w.Vector
	if v == nil || v.Found != 6 || len(v.Best) != 3 {
		t.Fatalf("vector leg %+v, want three of six hits", v)
	}
	for _, h := range v.Best {
		if want := min(max(h.Score, 0), 1); h.Cut == "" && h.Normalised != want {
			t.Errorf("the share of %+v is not its cosine", h)
		}
	}
	if b := w.Blend; b.Fusion != "linear" || b.VectorWeight != .7 || b.KeywordWeight != .3 || b.Documents < 2 || len(b.Best) == 0 || b.Candidates+w.Dropped.Similarity != 6 {
		t.Errorf("blend %+v with %d cut", b, w.Dropped.Similarity)
	}
	// The best chunk's place in the legs and the document's score are of one search.
	best := w.Answer.Results[0]
	if got := best.Explain.Recompute(); math.Abs(got-best.Explain.Score) > 1e-9 || math.Abs(got-best.Score) > 5e-5 {
		t.Errorf("the parts of the best score add up to %g, want %g and about %g", got, best.Explain.Score, best.Score)
	}
	for _, h := range v.Best {
		if h.Chunk == best.Explain.Chunk && h.Normalised != best.Explain.ChunkVector {
			t.Errorf("chunk %s has %g in its leg and %g in the score", h.Chunk, h.Normalised, best.Explain.ChunkVector)
		}
	}
	for _, p := range w.Blend.Best {
		for _, r := range w.Answer.Results {
			if r.Path == p.Path && math.Abs(p.Score+r.Explain.Graph-r.Explain.Score) > 1e-9 {
				t.Errorf("%s: %g before the graph, %g of it, %g after", p.Path, p.Score, r.Explain.Graph, r.Explain.Score)
			}
		}
	}
	if g := w.Graph; g.Limit != .04 || g.Considered != w.Blend.Documents || !slices.Equal(g.Context, []string{"x"}) {
		t.Errorf("graph %+v", g)
	}
	if !slices.ContainsFunc(w.Dropped.Duplicates, func(p string) bool { return strings.HasPrefix(p, "copy.md") || strings.HasPrefix(p, "token.md") }) || w.Dropped.Rounds < 1 {
		t.Errorf("cuts %+v, want one of two equal documents", w.Dropped)
	}
	if b := w.Budget; b == nil || b.MaxTokens != 900 || len(b.Parts) != texts(w.Answer) || len(b.Parts) == 0 || b.Parts[0].Tokens < 1 || !b.Parts[0].Whole {
		t.Errorf("budget %+v for %d results", b, len(w.Answer.Results))
	}
	stages := map[string]int{}
	for _, s := range w.Stages {
		stages[s.Stage]++
		if s.Start < 0 || s.Took < 0 || s.Start+s.Took > w.Took {
			t.Errorf("stage %+v of a search of %g ms", s, w.Took)
		}
	}
	for _, s := range []observe.Stage{observe.Keyword, observe.Embed, observe.Vectors, observe.Blend, observe.Graph, observe.Page, observe.Fit} {
		if stages[s.String()] == 0 {
			t.Errorf("stages %v lack %s", stages, s)
		}
	}
	text, err := json.Marshal(w)
	must(t, err)
	var back Trace
	must(t, json.Unmarshal(text, &back))
	again, err := json.Marshal(&back)
	must(t, err)
	if string(text) != string(again) || strings.Contains(string(text), ":null") && !strings.Contains(string(text), `"next_cursor":null`) {
		t.Errorf("as JSON and back:\n%s\n%s", text, again)
	}
	// The vector is kept.
	if w, err = f.Explain(t.Context(), q, 0); err != nil || !w.Embedding.Cached || w.Embedding.Took != 0 {
		t.Errorf("explained again: %+v, %v, want the vector from memory", w.Embedding, err)
	}
}

// TestTraceBranches checks what the traces of other searches hold.
func TestTraceBranches(t *testing.T) {
	f := open(t, traceFiles, &Options{Reweigher: lifter("token.md")}, "copy.md")
	for name, c := range map[string]struct {
		q     Query
		wrong func(w *Trace) bool
	}{
		"keyword": {Query{Text: "token", Mode: Keyword}, func(w *Trace) bool {
			return w.Vector != nil || w.Embedding != nil || w.Keyword == nil || w.Blend.VectorWeight != 0
		}},
		"semantic": {Query{Text: "token", Mode: Semantic}, func(w *Trace) bool {
			return w.Keyword != nil || w.Embedding == nil || w.Vector == nil || w.Blend.KeywordWeight != 0
		}},
		"operators": {Query{Text: `"a lost token" -roses`}, func(w *Trace) bool {
			return !w.Analysis.Phrases || !w.Analysis.Excludes || w.Dropped.Operators == 0 || w.Analysis.Plain != "a lost token"
		}},
		"near spellings": {Query{Text: "tokne", Mode: Keyword}, func(w *Trace) bool {
			return !w.Analysis.Near || w.Keyword.Found == 0
		}},
		"whole query": {Query{Text: "why can't I rotate a token"}, func(w *Trace) bool {
			return w.Embedding.Text != "why can't I rotate a token"
		}},
		"imputed": {Query{Text: "token door"}, func(w *Trace) bool { return w.Blend.Imputed == 0 }},
		"lifted": {Query{Text: "rotate a token"}, func(w *Trace) bool {
			return len(w.Graph.Changes) != 1 || w.Graph.Changes[0].Path != "token.md" || w.Graph.Changes[0].Bonus != .05 || w.Graph.Changes[0].Before < w.Graph.Changes[0].After
		}},
		"limit":  {Query{Text: "rotate a token", Limit: 1}, func(w *Trace) bool { return w.Dropped.Beyond == 0 || w.Budget != nil }},
		"budget": {Query{Text: "token", MaxTokens: MinBudget}, func(w *Trace) bool { return len(w.Budget.Omitted)+len(w.Budget.Parts) == 0 }},
	} {
		w, err := f.Explain(t.Context(), c.q, 100)
		must(t, err)
		if c.wrong(w) {
			text, _ := json.MarshalIndent(w, "", " ")
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, c := range []struct {
		q    Query
		best int
	}{{Query{Text: ""}, 3}, {Query{Text: "x"}, -1}, {Query{Text: "x"}, TraceLimit + 1}, {Query{Text: "x", Mode: "x"}, 3}} {
		if _, err := f.Explain(t.Context(), c.q, c.best); !errors.As(err, new(*InvalidError)) {
			t.Errorf("%+v with %d candidates: %v, want an InvalidError", c.q, c.best, err)
		}
	}
}

// counting listens to a search and to readings.
type counting struct {
	observe.Silent
	stages chan observe.Stage
	hits   chan bool
}

func (c counting) Stage(_ context.Context, s observe.Stage, _ time.Time, _ time.Duration) {
	c.stages <- s
}
func (c counting) Cached(_ context.Context, hit bool) { c.hits <- hit }

// TestStages checks that a listener receives each stage once.
func TestStages(t *testing.T) {
	f := open(t, traceFiles, nil)
	c := counting{stages: make(chan observe.Stage, 20), hits: make(chan bool, 20)}
	ctx := observe.With(t.Context(), c)
	told := func() (names []string) {
		for len(c.stages) > 0 {
			names = append(names, (<-c.stages).String())
		}
		slices.Sort(names)
		return names
	}
	_, err := f.Search(ctx, Query{Text: "token", Mode: Semantic})
	must(t, err)
	if got := strings.Join(told(), " "); got != "blend embed graph page vectors" {
		t.Errorf("a semantic search has the stages %s", got)
	}
	_, err = f.Search(ctx, Query{Text: "token", Mode: Semantic})
	must(t, err)
	if got := strings.Join(told(), " "); got != "blend graph page vectors" {
		t.Errorf("the same again has the stages %s", got)
	}
	if a, b := <-c.hits, <-c.hits; a || !b {
		t.Errorf("the query's vector is kept: %v, then %v; want false, then true", a, b)
	}
	_, err = f.Search(ctx, Query{Text: "token", Mode: Keyword, MaxTokens: 500})
	must(t, err)
	if got := strings.Join(told(), " "); got != "blend fit graph keyword page" {
		t.Errorf("a keyword search with a budget has the stages %s", got)
	}
	_, err = f.ReadAll(ctx, ReadRequest{Paths: []string{"token.md", "garden.md"}})
	must(t, err)
	if got := strings.Join(told(), " "); got != "read read" {
		t.Errorf("reading two documents has the stages %s", got)
	}
}
