package retriever

import (
	"math"
	"slices"
	"sync"

	"cairn/internal/store"
)

// candidate is a chunk that at least one leg found.
type candidate struct {
	chunk, path, anchor string
	number              int // of the chunk in its section
	document            int // number of the document, set by group
	Explanation
	vectorless bool // the chunk has no vector yet
}

// blender combines legs into scored candidates.
type blender struct {
	mode                        Mode
	vectorWeight, keywordWeight float64
	minSimilarity               float64
	unrelated                   float64 // cosine of two texts on different subjects
}

func (s *search) blender(mode Mode) blender {
	b := blender{mode: mode, vectorWeight: s.options.VectorWeight, keywordWeight: s.options.KeywordWeight}
	if s.sources.Embedder != nil {
		d := s.sources.Embedder.Description()
		b.minSimilarity, b.unrelated = d.NearEnough(), d.Unrelated
	}
	return b
}

// The cosine of a chunk without a vector is estimated from its keyword score: the best
// match gets 0.9 of the best cosine, the weakest 0.45. With half of the chunks without
// vectors, this is at least as good as the keyword leg alone, whereas a cosine of 0
// loses up to .35 nDCG@10.
const (
	imputeBase  = 0.45
	imputeSlope = 0.45
)

// blended pools slices of candidates, which are half of a search's allocations.
var blended = sync.Pool{New: func() any { return new([]candidate) }}

// release returns the candidates of blend to the pool. The caller must not use them
// afterwards.
func release(candidates []candidate) {
	clear(candidates)
	blended.Put(&candidates)
}

// numbers pools the maps that number the chunks and the documents of a search.
var numbers = sync.Pool{New: func() any { return map[string]int{} }}

func takeNumbers() map[string]int { return numbers.Get().(map[string]int) }

func returnNumbers(m map[string]int) {
	clear(m)
	numbers.Put(m)
}

// blend returns the candidates in no particular order; they are valid until release.
// Every keyword hit is a candidate. A chunk that only the vector leg found is one if its
// cosine is above minSimilarity or the search is semantic.
func (b *blender) blend(l *legs) []candidate {
	found := takeNumbers()
	defer returnNumbers(found)
	out := slices.Grow((*blended.Get().(*[]candidate))[:0], len(l.keyword)+len(l.vector))
	add := func(chunk string) *candidate {
		if i, ok := found[chunk]; ok {
			return &out[i]
		}
		c := candidate{chunk: chunk, vectorless: true}
		c.path, c.anchor, c.number, _ = store.SplitChunkID(chunk) // page drops an id that is not valid
		found[chunk] = len(out)
		out = append(out, c)
		return &out[len(out)-1]
	}
	if b.mode != Semantic {
		for i, h := range l.keyword {
			c := add(h.Chunk)
			c.BM25, c.KeywordRank = h.Score, i+1
			if i < len(l.cosines) && !math.IsNaN(l.cosines[i]) {
				c.Cosine, c.vectorless = l.cosines[i], false
			}
		}
	}
	for i, h := range l.vector {
		if b.mode == Hybrid && h.Score <= b.minSimilarity {
			if _, ok := found[h.Chunk]; !ok {
				continue
			}
		}
		c := add(h.Chunk)
		c.Cosine, c.VectorRank, c.vectorless = h.Score, i+1, false
	}
	b.score(out)
	return out
}

// score sets the components and the score of every candidate: the weighted sum of the
// clipped cosine and of BM25 divided by the query's best BM25.
func (b *blender) score(cs []candidate) {
	var bestBM25, nearest float64
	for i := range cs {
		c := &cs[i]
		c.Chunk, c.Fusion = c.chunk, "linear"
		c.VectorWeight, c.KeywordWeight = b.vectorWeight, b.keywordWeight
		c.Vector = min(max((c.Cosine-b.unrelated)/(1-b.unrelated), 0), 1)
		bestBM25, nearest = max(bestBM25, c.BM25), max(nearest, c.Vector)
	}
	for i := range cs {
		c := &cs[i]
		if bestBM25 > 0 {
			c.Keyword = c.BM25 / bestBM25
		}
		switch {
		case b.mode == Keyword:
			c.VectorWeight, c.KeywordWeight = 0, 1
			c.Cosine, c.Vector = 0, 0
		case b.mode == Semantic:
			c.VectorWeight, c.KeywordWeight = 1, 0
		case c.vectorless:
			c.Vector, c.Imputed = nearest*(imputeBase+imputeSlope*c.Keyword), true
		}
		c.ChunkVector, c.ChunkKeyword = c.Vector, c.Keyword
		c.Score = c.Recompute()
	}
}
