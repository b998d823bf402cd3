package keyword

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"cairn/internal/store"
)

// BM25 as Robertson and Zaragoza, "The Probabilistic Relevance Framework"
// (2009), without the constant factor k1+1:
//
//	score = sum over terms t of n(t) * idf(t) * f / (f + k1*(1-b+b*len/avg))
//	idf(t) = ln(1 + (N-df+0.5)/(df+0.5))
//
// with n(t) the term's weighted count in the query, f its weighted frequency in the
// chunk, len the chunk's words and avg their average.
const (
	k1 = 1.5
	b  = 0.60
)

func idf(docs, docFreq uint64) float64 {
	return math.Log1p((float64(docs) - float64(docFreq) + 0.5) / (float64(docFreq) + 0.5))
}

// Weights returns the weight of each term of an entry without the inverse document
// frequency, f/(f + k1*(1-b+b*len/avg)) in the formula of score.go, where avg is the
// average number of words per chunk. A store that multiplies the weights by the query's
// counts and the inverse document frequencies ranks as Index does.
func Weights(e store.KeywordEntry, avg float64) map[string]float64 {
	freqs, length := Terms(e)
	for term, f := range freqs {
		freqs[term] = f / (f + k1*(1-b+b*float64(length)/avg))
	}
	return freqs
}

// weightedTerm is a term of a query. Its weight is the most that it can add to a score.
type weightedTerm struct {
	term   string
	weight float64
	freq   uint64                 // number of chunks that contain the term
	lists  []segment.PostingsList // by segment
}

// scoredChunk is a chunk of a snapshot with its score.
type scoredChunk struct {
	seg   int
	doc   uint32
	score float32
}

// scorer adds up scores by segment and, within a segment, by term, rarest term first. It
// keeps every chunk that can be among the best k, including ties.
type scorer struct {
	k       int
	terms   []weightedTerm
	avg     float64   // average words per chunk
	rest    []float32 // rest[i] is the total weight of terms[i:]
	decoded *decodedCache
	floor   float32 // score of the k-th best so far
	*scratch
}

// scratch holds the buffers of a search for reuse.
type scratch struct {
	scores  []float32   // by chunk of the segment; zero between segments
	touched []uint32    // chunks with a score
	heap    []float32   // scores for kthBest
	list    decodedList // of a term
	best    []scoredChunk
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// slack widens bounds so that rounding never drops a chunk. float32 has a precision of 24
// bits, and a score is a sum over some tens of terms.
const slack = 1 + 1e-5

func newScorer(terms []weightedTerm, avg float64, k int, decoded *decodedCache) *scorer {
	// The order is the same in every segment, so that equal chunks have equal scores.
	slices.SortFunc(terms, func(a, b weightedTerm) int {
		return cmp.Or(cmp.Compare(a.freq, b.freq), cmp.Compare(a.term, b.term))
	})
	s := &scorer{scratch: scratches.Get().(*scratch), k: k, terms: terms, avg: avg, decoded: decoded, rest: make([]float32, len(terms)+1)}
	s.best = s.best[:0]
	for i := len(terms) - 1; i >= 0; i-- {
		s.rest[i] = s.rest[i+1] + float32(terms[i].weight)
	}
	return s
}

// release returns the scratch to its pool. It must not be called after an error, which
// leaves scores in the scratch.
func (s *scorer) release() { scratches.Put(s.scratch) }

// segment scores the chunks of a segment that are in allowed; nil allows all. seg is its
// index in the snapshot. lengths holds the number of words of each chunk.
func (s *scorer) segment(seg int, from *scorch.SegmentSnapshot, allowed *roaring.Bitmap, lengths []uint32) error {
	if s.rest[0]*slack < s.floor {
		return nil
	}
	if cap(s.scores) < len(lengths) {
		s.scores = make([]float32, len(lengths))
	}
	s.scores = s.scores[:len(lengths)]
	s.touched = s.touched[:0]
	var open []uint64 // allowed as bits; nil allows all
	if allowed != nil {
		open = allowed.ToDense()
	}
	pruned := false // only chunks with a score can be among the best
	for i, t := range s.terms {
		list := t.lists[seg]
		if list == nil {
			continue
		}
		if n := int(list.Count()); i > 0 && n > 256 && n > len(s.touched)/2 && s.pruneBelow(s.rest[i]) {
			pruned = true
			if len(s.touched) == 0 {
				break
			}
		}
		decoded, err := s.decoded.get(from, t.term, list, &s.list)
		if err != nil {
			return err
		}
		s.add(float32(t.weight), decoded, lengths, open, pruned)
	}

	s.floor = max(s.floor, s.kth())
	for _, d := range s.touched {
		if s.scores[d] >= s.floor {
			s.best = append(s.best, scoredChunk{seg, d, s.scores[d]})
		}
		s.scores[d] = 0
	}
	s.trim()
	return nil
}

// add adds the contribution of a term with the given weight to the chunks in list. If
// pruned is set, it ignores chunks without a score.
func (s *scorer) add(weight float32, list *decodedList, lengths []uint32, open []uint64, pruned bool) {
	base, slope := float32(k1*(1-b)), float32(k1*b/s.avg)
	i := 0
	for upper, end := range list.ends {
		for ; i < end; i++ {
			doc := uint32(upper)<<16 | uint32(list.docs[i])
			if s.scores[doc] == 0 {
				if pruned || open != nil && !admits(open, doc) {
					continue
				}
				s.touched = append(s.touched, doc)
			}
			f := list.freq(i)
			s.scores[doc] += weight * f / (f + base + slope*float32(lengths[doc]))
		}
	}
}

// admits reports whether doc's bit is set; bits may end before it.
func admits(bits []uint64, doc uint32) bool {
	i := int(doc >> 6)
	return i < len(bits) && bits[i]>>(doc&63)&1 == 1
}

// pruneBelow drops the chunks that cannot reach the floor even if they gain rest. If a
// chunk without a score could reach the floor, it does nothing and returns false.
func (s *scorer) pruneBelow(rest float32) bool {
	s.floor = max(s.floor, s.kth())
	if rest*slack >= s.floor {
		return false
	}
	kept := s.touched[:0]
	for _, d := range s.touched {
		if (s.scores[d]+rest)*slack >= s.floor {
			kept = append(kept, d)
		} else {
			s.scores[d] = 0
		}
	}
	s.touched = kept
	return true
}

// kth returns the k-th best score in the segment so far, or 0 if there are fewer scores.
func (s *scorer) kth() float32 {
	if len(s.touched) < s.k {
		return 0
	}
	s.heap = s.heap[:0]
	for _, d := range s.touched {
		s.heap = append(s.heap, s.scores[d])
	}
	return kthBest(s.heap, s.k)
}

// trim removes the chunks below the k-th best score from best.
func (s *scorer) trim() {
	if len(s.best) < s.k {
		return
	}
	s.heap = s.heap[:0]
	for _, f := range s.best {
		s.heap = append(s.heap, f.score)
	}
	s.floor = max(s.floor, kthBest(s.heap, s.k))
	s.best = slices.DeleteFunc(s.best, func(f scoredChunk) bool { return f.score < s.floor })
}

// kthBest returns the k-th largest of scores, whose first k become a heap with the smallest
// first.
func kthBest(scores []float32, k int) float32 {
	h := scores[:k]
	for i := k/2 - 1; i >= 0; i-- {
		down(h, i)
	}
	for _, v := range scores[k:] {
		if v > h[0] {
			h[0] = v
			down(h, 0)
		}
	}
	return h[0]
}

// down restores the heap h after element i has grown.
func down(h []float32, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[i] <= h[c] {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}
