package benchmarks

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"cairn/retriever"
)

// variant is a configuration of the search.
type variant struct {
	name     string
	mode     retriever.Mode // "" means hybrid
	ablation bool
	change   func(*retriever.Options) // nil changes nothing
	bare     bool                     // search an index without titles and headings
}

// variants lists changes of one part of the hybrid search each, to measure the effect of
// the part. The legs are variants too, as modes. A ContextReport has the effect of the
// co-usage graph.
var variants = []variant{
	{name: "weights 85/15", change: weights(.85, .15)},
	{name: "weights 55/45", change: weights(.55, .45)},
	{name: "no title and headings", bare: true},
}

func weights(vector, keyword float64) func(*retriever.Options) {
	return func(o *retriever.Options) { o.VectorWeight, o.KeywordWeight = vector, keyword }
}

// ablate runs all queries with each variant. dir is a folder for a second index.
func (m *measurement) ablate(ctx context.Context, dir string) error {
	var all []variant
	for _, mode := range []retriever.Mode{retriever.Keyword, retriever.Semantic} {
		if _, ok := m.report.Modes[mode]; !ok { // it was not measured as a mode
			all = append(all, variant{name: string(mode), mode: mode})
		}
	}
	all = append(all, variants...)
	if m.o.Reranker != nil {
		all = append(all, variant{name: "no re-ranker", change: func(o *retriever.Options) { o.Reranker = nil }})
	}
	for _, v := range all {
		v.ablation = true
		if err := m.measureVariant(ctx, v, dir); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return m.change(func(*retriever.Options) {})
}

func (m *measurement) measureVariant(ctx context.Context, v variant, dir string) error {
	w := m.bench
	if v.bare {
		dir = filepath.Join(dir, "bare")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		var err error
		if w, err = openBench(ctx, dir, m.set, m.o, m.bench); err != nil {
			return err
		}
		defer w.close()
	}
	if v.change != nil {
		if err := w.change(v.change); err != nil {
			return err
		}
	}
	_, err := m.search(ctx, w, v)
	return err
}

// Ablation is the effect of a variant on nDCG@10.
type Ablation struct {
	Variant string     `json:"variant"`
	NDCG10  float64    `json:"ndcg@10"`
	Change  float64    `json:"change"`
	CI      [2]float64 `json:"ci95"` // of Change
	P       float64    `json:"p"`    // of the paired randomization test
}

// ablations compares the variants among runs, and the legs, with the main run.
func ablations(runs []*Run) []Ablation {
	var out []Ablation
	main := mainRun(runs)
	if retriever.Mode(main.System) != retriever.Hybrid {
		return nil
	}
	before := main.each()
	for _, r := range runs {
		name, leg := legNames[retriever.Mode(r.System)]
		if !r.Ablation && !leg || !slices.EqualFunc(main.Queries, r.Queries, func(a, b RunQuery) bool { return a.ID == b.ID }) {
			continue
		}
		after := r.each()
		change := make([]Metrics, len(after))
		for i := range after {
			for j, f := range change[i].fields() {
				*f = *after[i].fields()[j] - *before[i].fields()[j]
			}
		}
		all := randomize(metricNames[:1], before, after, randomRounds, 1)[0]
		out = append(out, Ablation{cmp.Or(name, r.System), all.B, all.B - all.A, intervals(change)[metricNames[0]], all.P})
	}
	return out
}

var legNames = map[retriever.Mode]string{retriever.Keyword: "words alone", retriever.Semantic: "meaning alone"}
