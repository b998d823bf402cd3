package benchmarks

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"cairn/graphrank"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox/records"
	"cairn/internal/toolbox/usage"
	"cairn/retriever"
)

// ContextReport compares hybrid searches with one relevant document as context with the same
// searches without it. That document is removed from both rankings and from the judgements.
type ContextReport struct {
	Queries int `json:"queries"` // with two or more relevant documents
	Pairs   int `json:"pairs"`   // of a query and its context
	Edges   int `json:"edges"`   // learnt
	// Without is the mean nDCG@10 over pairs without a context.
	Without float64 `json:"ndcg@10_without"`
	// ContextGain is the gain of the formula that cairn uses, Formulas those of all.
	ContextGain
	Formulas []ContextGain `json:"formulas"`
}

// ContextGain is the effect of one formula.
type ContextGain struct {
	Formula string  `json:"formula"`
	With    float64 `json:"ndcg@10_with"` // the mean over pairs
	Better  int     `json:"better"`       // pairs
	Worse   int     `json:"worse"`
}

// contextFormula is a formula for retriever.CoUsage.
type contextFormula func(g *graphrank.Graph, context, candidates []string) []float64

// contextFormulas lists the compared formulas, the one that cairn uses first.
var contextFormulas = []struct {
	name    string
	formula contextFormula
}{
	{"affinity", (*graphrank.Graph).Affinity},
	{"share of counts", shares},
	{"Adamic-Adar", adamicAdar},
	{"PageRank", pageRank},
	{"PageRank from the context", personalized},
	{"Adamic-Adar and PageRank", mean(adamicAdar, pageRank)},
	{"Adamic-Adar and PageRank from the context", mean(adamicAdar, personalized)},
	{"share of counts and Adamic-Adar", mean(shares, adamicAdar)},
	{"share of counts and PageRank from the context", mean(shares, personalized)},
}

// shares is the share of the uses of a context node that were together with the candidate,
// with one use added to the denominator.
func shares(g *graphrank.Graph, context, candidates []string) []float64 {
	out := make([]float64, len(candidates))
	for _, c := range context {
		counts, total := map[string]float64{}, 1.0
		for e := range g.Out(c) {
			counts[e.To] += e.Count
			total += e.Count
		}
		for e := range g.In(c) {
			counts[e.From] += e.Count
			total += e.Count
		}
		for i, id := range candidates {
			out[i] = max(out[i], counts[id]/total)
		}
	}
	return out
}

// adamicAdar is 1 for a neighbour of the context, and half the Adamic-Adar sum otherwise.
func adamicAdar(g *graphrank.Graph, context, candidates []string) []float64 {
	out := make([]float64, len(candidates))
	for i, id := range candidates {
		out[i] = g.Relatedness(id, context)
	}
	return out
}

// pageRank is the PageRank divided by the highest in the graph, without the context.
func pageRank(g *graphrank.Graph, _, candidates []string) []float64 {
	return overBest(g.PageRank(), candidates)
}

// personalized is the PageRank with the context as seeds, divided by the highest of the other
// nodes.
func personalized(g *graphrank.Graph, context, candidates []string) []float64 {
	ranks := map[string]float64{}
	for _, s := range g.Personalized(context, g.Len()) {
		if !slices.Contains(context, s.ID) {
			ranks[s.ID] = s.Score
		}
	}
	return overBest(ranks, candidates)
}

func overBest(ranks map[string]float64, candidates []string) []float64 {
	best := 0.0
	for _, r := range ranks {
		best = max(best, r)
	}
	out := make([]float64, len(candidates))
	for i, id := range candidates {
		if best > 0 {
			out[i] = ranks[id] / best
		}
	}
	return out
}

func mean(a, b contextFormula) contextFormula {
	return func(g *graphrank.Graph, context, candidates []string) []float64 {
		out, other := a(g, context, candidates), b(g, context, candidates)
		for i := range out {
			out[i] = (out[i] + other[i]) / 2
		}
		return out
	}
}

// formula is the measured formula.
func (w *bench) formula(g *graphrank.Graph, context, candidates []string) []float64 {
	return w.measured(g, context, candidates)
}

// learn learns a session of each query of a split.
func (w *bench) learn(ctx context.Context, dir string, o *DocsOptions) (*usage.Store, error) {
	set, err := readBEIR(o.Data, o.Learn)
	if err != nil {
		return nil, fmt.Errorf("reading what is learnt: %w", err)
	}
	var traces []usage.Trace
	r := rand.New(rand.NewPCG(1, 1))
	for i, q := range set.queries {
		if o.Learn == o.Split && i%2 == 1 {
			continue
		}
		t := usage.Trace{Intent: strings.TrimSpace(q.Text)}
		read := slices.Sorted(maps.Keys(q.Relevant))
		r.Shuffle(len(read), func(i, j int) { read[i], read[j] = read[j], read[i] })
		for _, id := range read {
			t.Calls = append(t.Calls, usage.Call{Tool: graphrank.DocumentID(w.paths[id])})
		}
		traces = append(traces, t)
	}
	db, err := kv.Open(filepath.Join(dir, "usage.db"), nil)
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, db.Close)
	s, err := usage.Open(records.NewFile(db, usage.Buckets()...), nil)
	if err != nil {
		return nil, err
	}
	return s, s.Learn(ctx, traces...)
}

// measureContext runs the queries with two or more relevant documents.
func (w *bench) measureContext(ctx context.Context, queries []RunQuery) (*ContextReport, error) {
	r := &ContextReport{Formulas: make([]ContextGain, len(contextFormulas))}
	if err := w.usage.Read(func(g *graphrank.Graph) error { r.Edges = g.EdgeCount(); return nil }); err != nil {
		return nil, err
	}
	for _, q := range queries {
		if len(q.Relevant) < 2 {
			continue
		}
		r.Queries++
		for _, given := range slices.Sorted(maps.Keys(q.Relevant)) {
			without, err := w.measurePair(ctx, q, given)
			if err != nil {
				return nil, err
			}
			r.Pairs++
			r.Without += without
			for i, f := range contextFormulas {
				w.measured = f.formula
				with, err := w.measurePair(ctx, q, given, w.paths[given])
				if err != nil {
					return nil, err
				}
				r.Formulas[i].add(without, with)
			}
		}
	}
	if r.Pairs == 0 {
		return nil, fmt.Errorf("no query has two relevant documents, one of which could be given as the context")
	}
	r.Without /= float64(r.Pairs)
	for i := range r.Formulas {
		r.Formulas[i].Formula = contextFormulas[i].name
		r.Formulas[i].With /= float64(r.Pairs)
	}
	r.ContextGain = r.Formulas[0]
	return r, nil
}

func (c *ContextGain) add(without, with float64) {
	c.With += with
	switch {
	case with > without:
		c.Better++
	case with < without:
		c.Worse++
	}
}

// measurePair returns nDCG@10 of q without the document given. inUse is the context.
func (w *bench) measurePair(ctx context.Context, q RunQuery, given string, inUse ...string) (float64, error) {
	ranking, err := w.retriever.Rank(ctx, retriever.Query{Text: strings.TrimSpace(q.Text), Mode: retriever.Hybrid, Context: inUse}, 0)
	if err != nil {
		return 0, fmt.Errorf("query %s: %w", q.ID, err)
	}
	rest := maps.Clone(q.Relevant)
	delete(rest, given)
	var ids []string
	for _, d := range ranking.Documents {
		if id := w.ids[d.Path]; id != given {
			ids = append(ids, id)
		}
	}
	return measureRanking(ids, rest).NDCG10, nil
}
