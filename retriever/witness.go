package retriever

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"cairn/internal/observe"
	"cairn/internal/store"
)

// witness writes down the way of one search. It is in the context of those that
// are explained; all others have none, and a nil witness sees nothing.
type witness struct {
	observe.Silent
	best  int
	start time.Time
	way   Way

	vectors []store.Hit // of the vector leg before operators forbid some
	problem error       // of the vector leg
	spent   map[string]Spent
	scores  map[string]Explanation // by document

	mu     sync.Mutex // the legs end at the same time
	cached bool
}

type witnessKey struct{}

func witnessOf(ctx context.Context) *witness {
	w, _ := ctx.Value(witnessKey{}).(*witness)
	return w
}

// Stage implements observe.Listener.
func (w *witness) Stage(_ context.Context, s observe.Stage, start time.Time, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.way.Stages = append(w.way.Stages, Step{Stage: s.String(), Start: ms(start.Sub(w.start)), Took: ms(took)})
}

// Cached implements observe.Listener.
func (w *witness) Cached(_ context.Context, hit bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cached = hit
}

// found sees what the legs returned.
func (w *witness) found(f *found, depth int, err error) {
	if w == nil {
		return
	}
	// Each round begins anew, and asks for more.
	w.way.Cuts = Cuts{Rounds: w.way.Cuts.Rounds + 1, Gone: []string{}, Duplicates: []string{}}
	w.vectors, w.problem = slices.Clone(f.vector), err
	w.way.Keyword, w.way.Vector = nil, nil
	if f.mode != Semantic {
		w.way.Keyword = &Leg{Asked: depth}
	}
	if f.mode != Keyword {
		w.way.Vector = &Leg{Asked: depth}
	}
}

// blended sees which hits became candidates and in which order.
func (w *witness) blended(b *blender, f *found, candidates []candidate, ranking *Ranking) {
	if w == nil {
		return
	}
	blend := Blending{Fusion: b.fusion, VectorWeight: b.vectorWeight, KeywordWeight: b.keywordWeight, MinSimilarity: b.minSimilarity, Candidates: len(candidates), Documents: len(ranking.Documents), Best: []Place{}}
	of := make(map[string]*candidate, len(candidates))
	for i := range candidates {
		c := &candidates[i]
		of[c.chunk] = c
		blend.Fusion, blend.VectorWeight, blend.KeywordWeight = c.Fusion, c.VectorWeight, c.KeywordWeight
		blend.BestBM25 = max(blend.BestBM25, c.BM25)
		if c.Imputed {
			blend.Imputed++
		}
	}
	near := make(map[string]bool, len(f.vector))
	for _, h := range f.vector {
		near[h.Chunk] = true
	}
	for i, h := range f.keyword {
		if i < len(f.cosines) && !near[h.Chunk] && !math.IsNaN(f.cosines[i]) {
			blend.LookedUp++
		}
	}
	for i, d := range ranking.Documents[:min(w.best, len(ranking.Documents))] {
		blend.Best = append(blend.Best, Place{i + 1, d.Path, d.Score})
	}
	w.way.Blend = blend
	if f.mode == Keyword && len(f.keyword) > 0 && w.way.Keyword == nil { // the rescue of a semantic search
		w.way.Keyword = &Leg{Asked: len(f.keyword)}
	}
	if leg := w.way.Keyword; leg != nil {
		leg.Found, leg.Best = len(f.keyword), []LegHit{}
		for i, h := range f.keyword[:min(w.best, len(f.keyword))] {
			hit := LegHit{Rank: i + 1, Chunk: h.Chunk, Score: h.Score}
			if c := of[h.Chunk]; c != nil {
				hit.Share = c.ChunkKeyword
			}
			leg.Best = append(leg.Best, hit)
		}
	}
	if leg := w.way.Vector; leg != nil {
		leg.Found, leg.Best = len(w.vectors), []LegHit{}
		for i, h := range w.vectors {
			hit := LegHit{Rank: i + 1, Chunk: h.Chunk, Score: h.Score}
			switch c := of[h.Chunk]; {
			case c != nil:
				hit.Share = c.ChunkVector
			case near[h.Chunk]:
				hit.Cut = "similarity"
				w.way.Cuts.Similarity++
			default:
				hit.Cut = "operators"
				w.way.Cuts.Operators++
			}
			if i < w.best {
				leg.Best = append(leg.Best, hit)
			}
		}
	}
}

// reweighed sees the ranking after the graph; before it was given by blended.
func (w *witness) reweighed(ranking *Ranking, before []string) {
	if w == nil {
		return
	}
	w.way.Graph.Looked, w.way.Graph.Moved = min(reweighed, len(ranking.Documents)), nil
	w.scores = make(map[string]Explanation, len(ranking.Documents))
	for i := range ranking.Documents {
		d := &ranking.Documents[i]
		w.scores[d.Path] = d.Explanation
		if d.Graph != 0 {
			w.way.Graph.Moved = append(w.way.Graph.Moved, Move{d.Path, d.Graph, 1 + slices.Index(before, d.Path), i + 1})
		}
	}
}

// order is the paths of a ranking, for reweighed; nil where nobody asks.
func (w *witness) order(ranking *Ranking) []string {
	if w == nil {
		return nil
	}
	var paths []string
	for i := range ranking.Documents {
		paths = append(paths, ranking.Documents[i].Path)
	}
	return paths
}

// gone sees a document that left, or changed, after the index was read.
func (w *witness) gone(d *RankedDocument) {
	if w != nil {
		w.way.Cuts.Gone = append(w.way.Cuts.Gone, d.Path)
	}
}

// duplicate sees a place whose text is nearly that of a better one.
func (w *witness) duplicate(place string) {
	if w != nil {
		w.way.Cuts.Duplicates = append(w.way.Cuts.Duplicates, place)
	}
}

// fitted sees what of a result fits the budget.
func (w *witness) fitted(r *Result, whole bool, tokens int) {
	if w == nil {
		return
	}
	if w.spent == nil {
		w.spent = map[string]Spent{}
	}
	at := place(r.Path, r.Anchor)
	w.spent[at] = Spent{Place: at, Tokens: tokens, Whole: whole}
}
