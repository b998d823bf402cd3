package benchmarks

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"cairn/graphrank"
	"cairn/internal/kv"
	"cairn/internal/records"
	"cairn/internal/usage"
	"cairn/retriever"
)

// ContextReport compares hybrid searches that are told of one relevant document
// in use with the same searches that are not. That document is taken out of
// ranking and judgements in both.
type ContextReport struct {
	Queries int `json:"queries"` // with two or more relevant documents
	Pairs   int `json:"pairs"`   // of a query and the document given
	Edges   int `json:"edges"`   // learnt
	// Without and With are nDCG@10 over the other relevant documents, the mean
	// over pairs; Better and Worse count the pairs that changed.
	Without float64 `json:"ndcg@10_without"`
	With    float64 `json:"ndcg@10_with"`
	Better  int     `json:"better"`
	Worse   int     `json:"worse"`
}

// learn makes traces of a split's queries and learns them.
func (w *bench) learn(ctx context.Context, dir string, o *DocsOptions) (*usage.Store, error) {
	set, err := readBEIR(o.Data, o.Learn)
	if err != nil {
		return nil, fmt.Errorf("reading what is learnt: %w", err)
	}
	paths := make(map[string]string, len(w.ids))
	for path, id := range w.ids {
		paths[id] = path
	}
	var traces []usage.Trace
	for _, q := range set.queries {
		t := usage.Trace{Intent: strings.TrimSpace(q.text)}
		for _, id := range slices.Sorted(maps.Keys(q.relevant)) {
			t.Calls = append(t.Calls, usage.Call{Tool: usage.DocumentID(paths[id])})
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
func (w *bench) measureContext(ctx context.Context, queries []beirQuery) (*ContextReport, error) {
	r := &ContextReport{}
	if err := w.usage.Read(func(g *graphrank.Graph) error { r.Edges = g.EdgeCount(); return nil }); err != nil {
		return nil, err
	}
	for _, q := range queries {
		if len(q.relevant) < 2 {
			continue
		}
		r.Queries++
		for _, given := range slices.Sorted(maps.Keys(q.relevant)) {
			rest := maps.Clone(q.relevant)
			delete(rest, given)
			var scores [2]float64
			for i, inUse := range [][]string{nil, {w.path(given)}} {
				ranking, err := w.retriever.Rank(ctx, retriever.Query{Text: strings.TrimSpace(q.text), Mode: retriever.Hybrid, Context: inUse}, 0)
				if err != nil {
					return nil, fmt.Errorf("query %s: %w", q.id, err)
				}
				var ids []string
				for _, d := range ranking.Documents {
					if id := w.ids[d.Path]; id != given {
						ids = append(ids, id)
					}
				}
				scores[i] = Measure(ids, rest).NDCG10
			}
			r.Pairs++
			r.Without += scores[0]
			r.With += scores[1]
			switch {
			case scores[1] > scores[0]:
				r.Better++
			case scores[1] < scores[0]:
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

// path is the file of a document.
func (w *bench) path(id string) string {
	for path, have := range w.ids {
		if have == id {
			return path
		}
	}
	return ""
}
