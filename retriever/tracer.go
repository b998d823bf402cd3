package retriever

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"cairn/internal/base/observe"
	"cairn/internal/store"
	"cairn/internal/text/query"
)

// tracer records the Trace of one search. Explain adds it to the context. A search
// without a trace has a nil tracer, whose methods do nothing.
type tracer struct {
	observe.Silent
	best  int
	start time.Time
	trace Trace
	query query.Query // parsed

	vectors   []store.Hit // of the vector leg before filterOperators
	vectorErr error
	scores    map[string]Explanation // by document

	mu     sync.Mutex // the legs run concurrently
	cached bool
}

type tracerKey struct{}

func tracerOf(ctx context.Context) *tracer {
	t, _ := ctx.Value(tracerKey{}).(*tracer)
	return t
}

// Stage implements observe.Listener.
func (t *tracer) Stage(_ context.Context, s observe.Stage, start time.Time, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trace.Stages = append(t.trace.Stages, Step{Stage: s.String(), Start: ms(start.Sub(t.start)), Took: ms(took)})
}

// Cached implements observe.Listener.
func (t *tracer) Cached(_ context.Context, hit bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cached = hit
}

// found records what the legs returned.
func (t *tracer) found(l *legs) {
	if t == nil {
		return
	}
	// Each round replaces the hits of the previous one.
	t.trace.Dropped = Dropped{Rounds: t.trace.Dropped.Rounds + 1, Removed: []string{}, Duplicates: []string{}}
	t.vectors, t.vectorErr = slices.Clone(l.vector), l.failed
	t.trace.Keyword, t.trace.Vector = nil, nil
	if l.mode != Semantic {
		t.trace.Keyword = &Leg{Asked: l.depth}
	}
	if l.mode != Keyword {
		t.trace.Vector = &Leg{Asked: l.nearest()}
	}
}

// blended records which hits became candidates, and their order.
func (t *tracer) blended(b *blender, l *legs, candidates []candidate, ranking *Ranking) {
	if t == nil {
		return
	}
	blend := Blending{Fusion: "linear", VectorWeight: b.vectorWeight, KeywordWeight: b.keywordWeight, MinSimilarity: b.minSimilarity, Candidates: len(candidates), Documents: len(ranking.Documents), Best: []Place{}}
	of := make(map[string]*candidate, len(candidates))
	for i := range candidates {
		c := &candidates[i]
		of[c.chunk] = c
		blend.VectorWeight, blend.KeywordWeight = c.VectorWeight, c.KeywordWeight
		blend.BestBM25 = max(blend.BestBM25, c.BM25)
		if c.Imputed {
			blend.Imputed++
		}
	}
	near := make(map[string]bool, len(l.vector))
	for _, h := range l.vector {
		near[h.Chunk] = true
	}
	for i, h := range l.keyword {
		if i < len(l.cosines) && !near[h.Chunk] && !math.IsNaN(l.cosines[i]) {
			blend.LookedUp++
		}
	}
	for i, d := range ranking.Documents[:min(t.best, len(ranking.Documents))] {
		blend.Best = append(blend.Best, Place{i + 1, d.Path, d.Score})
	}
	t.trace.Blend = blend
	if l.mode == Keyword && len(l.keyword) > 0 && t.trace.Keyword == nil { // a semantic search without vectors
		t.trace.Keyword = &Leg{Asked: len(l.keyword)}
	}
	t.fill(t.trace.Keyword, l.keyword, func(hit *LegHit) {
		if c := of[hit.Chunk]; c != nil {
			hit.Normalised = c.ChunkKeyword
		}
	})
	t.fill(t.trace.Vector, t.vectors, func(hit *LegHit) {
		switch c := of[hit.Chunk]; {
		case c != nil:
			hit.Normalised = c.ChunkVector
		case near[hit.Chunk]:
			hit.Cut = "similarity"
			t.trace.Dropped.Similarity++
		default:
			hit.Cut = "operators"
			t.trace.Dropped.Operators++
		}
	})
}

// fill adds hits to a leg, unless it is nil. complete is called with every hit.
func (t *tracer) fill(leg *Leg, hits []store.Hit, complete func(*LegHit)) {
	if leg == nil {
		return
	}
	leg.Found, leg.Best = len(hits), []LegHit{}
	for i, h := range hits {
		hit := LegHit{Rank: i + 1, Chunk: h.Chunk, Score: h.Score}
		if complete(&hit); i < t.best {
			leg.Best = append(leg.Best, hit)
		}
	}
}

// reweighed records the ranking after the graph. before is the order before it.
func (t *tracer) reweighed(ranking *Ranking, before []string) {
	if t == nil {
		return
	}
	t.trace.Graph.Considered, t.trace.Graph.Changes = min(reweighed, len(ranking.Documents)), []RankChange{}
	t.scores = make(map[string]Explanation, len(ranking.Documents))
	for i := range ranking.Documents {
		d := &ranking.Documents[i]
		t.scores[d.place()] = d.Explanation
		if d.Graph != 0 {
			t.trace.Graph.Changes = append(t.trace.Graph.Changes, RankChange{d.Path, d.Graph, 1 + slices.Index(before, d.place()), i + 1})
		}
	}
}

// reranked records the ranking after the re-ranker. before is the order before it.
func (t *tracer) reranked(ranking *Ranking, before []string, passages, read int, budget time.Duration) {
	if t == nil {
		return
	}
	t.trace.Rerank = &Reranking{Passages: passages, Read: read, Budget: ms(budget), Best: []Reranked{}}
	for i := range ranking.Documents {
		d := &ranking.Documents[i]
		t.scores[d.place()] = d.Explanation
		if d.Logit != nil {
			t.trace.Rerank.Best = append(t.trace.Rerank.Best, Reranked{i + 1, 1 + slices.Index(before, d.place()), *d.Logit, d.Path})
		}
	}
}

// order returns the places of a ranking for reweighed and reranked.
func (t *tracer) order(ranking *Ranking) []string {
	if t == nil {
		return nil
	}
	places := make([]string, len(ranking.Documents))
	for i := range places {
		places[i] = ranking.Documents[i].place()
	}
	return places
}

// removed records a document that was removed or changed after the legs found it.
func (t *tracer) removed(path string) {
	if t != nil {
		t.trace.Dropped.Removed = append(t.trace.Dropped.Removed, path)
	}
}

// duplicate records a place whose text is nearly the same as that of a better one.
func (t *tracer) duplicate(place string) {
	if t != nil {
		t.trace.Dropped.Duplicates = append(t.trace.Dropped.Duplicates, place)
	}
}
