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
	// Without and With are the mean nDCG@10 over pairs, without and with a context.
	Without float64 `json:"ndcg@10_without"`
	With    float64 `json:"ndcg@10_with"`
	Better  int     `json:"better"` // pairs
	Worse   int     `json:"worse"`
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
	r := &ContextReport{}
	if err := w.usage.Read(func(g *graphrank.Graph) { r.Edges = g.EdgeCount() }); err != nil {
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
			with, err := w.measurePair(ctx, q, given, w.paths[given])
			if err != nil {
				return nil, err
			}
			r.Pairs++
			r.Without += without
			r.With += with
			if with > without {
				r.Better++
			} else if with < without {
				r.Worse++
			}
		}
	}
	if r.Pairs == 0 {
		return nil, fmt.Errorf("no query has two relevant documents, one of which could be given as the context")
	}
	r.Without /= float64(r.Pairs)
	r.With /= float64(r.Pairs)
	return r, nil
}

// measurePair returns nDCG@10 of q without the document given. inUse is the context.
func (w *bench) measurePair(ctx context.Context, q RunQuery, given string, inUse ...string) (float64, error) {
	ids, err := w.rank(ctx, retriever.Query{Text: q.Text, Mode: retriever.Hybrid, Context: inUse})
	if err != nil {
		return 0, fmt.Errorf("query %s: %w", q.ID, err)
	}
	rest := maps.Clone(q.Relevant)
	delete(rest, given)
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == given })
	return measureRanking(ids, rest).NDCG10, nil
}
