package keyword

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"cairn/internal/store"
	"cairn/internal/text/query"
)

// Search implements store.Keyword. The filter, phrases and exclusions determine which
// chunks are returned, not their scores.
func (x *Index) Search(ctx context.Context, q query.Query, k int, f store.Filter) (hits []store.Hit, err error) {
	analysed := NewQuery(q)
	if k <= 0 || len(analysed.terms) == 0 {
		return nil, ctx.Err()
	}
	err = x.read(func(snap *scorch.IndexSnapshot) error {
		hits, err = x.search(ctx, snap, analysed, k, f)
		return err
	})
	return hits, err
}

// Admits implements store.Keyword.
func (x *Index) Admits(ctx context.Context, q query.Query, chunks []string) ([]bool, error) {
	found := make(map[string]bool, len(chunks))
	err := x.read(func(snap *scorch.IndexSnapshot) error {
		resolved, err := resolve(snap, NewQuery(q))
		if err != nil {
			return err
		}
		for _, s := range snap.Segments() {
			if err := ctx.Err(); err != nil {
				return err
			}
			present, err := s.Segment().DocNumbers(chunks)
			if err != nil {
				return err
			}
			allowed, err := admitted(s, resolved, store.Filter{})
			if err != nil {
				return err
			}
			if allowed == nil {
				allowed = s.DocNumbersLive()
			}
			for it := roaring.And(present, allowed).Iterator(); it.HasNext(); {
				id, err := s.DocID(uint64(it.Next()))
				if err != nil {
					return err
				}
				found[string(id)] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(chunks))
	for i, c := range chunks {
		out[i] = found[c]
	}
	return out, nil
}

// read calls fn with the current state. It converts a panic, which a decoder raises for
// damaged bytes, to ErrCorrupt.
func (x *Index) read(fn func(*scorch.IndexSnapshot) error) (err error) {
	x.open.RLock()
	defer x.open.RUnlock()
	snap, err := x.snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	if err := x.checked.check(snap); err != nil {
		return fmt.Errorf("searching keyword index %s: %w", x.dir, err)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("searching keyword index %s: %w: %v", x.dir, ErrCorrupt, r)
		}
	}()
	if err := fn(snap); err != nil {
		return fmt.Errorf("searching keyword index %s: %w", x.dir, err)
	}
	return nil
}

func (x *Index) search(ctx context.Context, snap *scorch.IndexSnapshot, q Query, k int, f store.Filter) ([]store.Hit, error) {
	docs, err := snap.DocCount()
	if err != nil || docs == 0 {
		return nil, err
	}
	if q, err = resolve(snap, q); err != nil {
		return nil, err
	}
	terms, err := exactTerms(snap, q.terms, docs)
	if err == nil && (q.longer || lacksWord(q.terms, terms)) {
		v := snapshot{snap}
		if q, err = q.Near(v, func(terms []string) (map[string]float64, error) { return v.idfs(terms, docs) }); err == nil {
			terms, err = exactTerms(snap, q.terms, docs)
		}
	}
	if err != nil {
		return nil, err
	}
	lengths, avg, err := x.lengths.of(snap)
	if err != nil {
		return nil, err
	}
	sc := newScorer(terms, avg, min(k, int(docs)), x.decoded)
	for i, s := range snap.Segments() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		allowed, err := admitted(s, q, f)
		if err != nil {
			return nil, err
		}
		if allowed != nil && allowed.IsEmpty() {
			continue
		}
		if err := sc.segment(i, s, allowed, lengths[i]); err != nil {
			return nil, err
		}
	}
	defer sc.release()
	return hitsOf(snap, sc.best, k)
}

// exactTerms looks up the terms of a query. The weight of each is its count in the query
// times its inverse document frequency.
func exactTerms(snap *scorch.IndexSnapshot, terms []queryTerm, docs uint64) ([]weightedTerm, error) {
	weighted := make([]weightedTerm, len(terms))
	for i, q := range terms {
		t, err := lookUp(snap, q.term)
		if err != nil {
			return nil, err
		}
		t.weight = q.count * idf(docs, t.freq)
		weighted[i] = t
	}
	return weighted, nil
}

// lacksWord reports whether there is a word of the query that no chunk contains. found
// holds the results of exactTerms for terms.
func lacksWord(terms []queryTerm, found []weightedTerm) bool {
	for i, q := range terms {
		if q.written != "" && found[i].freq == 0 {
			return true
		}
	}
	return false
}

// lookUp finds the postings of a term in every segment. It does not set the weight.
func lookUp(snap *scorch.IndexSnapshot, term string) (weightedTerm, error) {
	t := weightedTerm{term: term, lists: make([]segment.PostingsList, len(snap.Segments()))}
	for i, s := range snap.Segments() {
		list, err := postings(s, textField, term)
		if err != nil {
			return t, err
		}
		if n := list.Count(); n > 0 {
			t.lists[i] = list
			t.freq += n
		}
	}
	return t, nil
}

// resolve calls q.Resolve with the terms of snap.
func resolve(snap *scorch.IndexSnapshot, q Query) (Query, error) {
	return q.Resolve(func(term string) (bool, error) {
		t, err := lookUp(snap, term)
		return t.freq > 0, err
	})
}

// admitted returns the chunks of a segment that pass the filter and contain all phrases
// and nothing excluded; nil means all.
func admitted(s *scorch.SegmentSnapshot, q Query, f store.Filter) (*roaring.Bitmap, error) {
	var all *roaring.Bitmap
	var err error
	if !f.IsZero() {
		if all, err = filtered(s, f); err != nil {
			return nil, err
		}
	}
	for _, p := range q.phrases {
		bm, err := withPhrase(s, p)
		if err != nil {
			return nil, err
		}
		all = and(all, bm)
	}
	for _, p := range q.excluded {
		bm, err := withPhrase(s, p)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = s.DocNumbersLive()
		}
		all = roaring.AndNot(all, bm)
	}
	return all, nil
}

// and intersects two sets of chunks; a nil all contains every chunk.
func and(all, some *roaring.Bitmap) *roaring.Bitmap {
	if all == nil {
		return some
	}
	return roaring.And(all, some)
}

// hitsOf converts chunks to hits and returns the best k.
func hitsOf(snap *scorch.IndexSnapshot, best []scoredChunk, k int) ([]store.Hit, error) {
	hits := make([]store.Hit, len(best))
	var ids strings.Builder // pieces for many hits
	for i, b := range best {
		id, err := snap.Segments()[b.seg].DocID(uint64(b.doc))
		if err != nil {
			return nil, err
		}
		if ids.Cap()-ids.Len() < len(id) {
			ids = strings.Builder{}
			ids.Grow(max(4<<10, len(id)))
		}
		from := ids.Len()
		ids.Write(id)
		hits[i] = store.Hit{Chunk: ids.String()[from:], Score: float64(b.score)}
	}
	slices.SortFunc(hits, store.CompareHits)
	return hits[:min(k, len(hits))], nil
}

// TermStat is a term of a query with the number of chunks that contain it.
type TermStat struct {
	Term   string `json:"term"`
	Chunks int    `json:"chunks"`
}

// IDF returns the inverse document frequency of the term in an index with the given
// number of chunks, as used in scores.
func (t TermStat) IDF(chunks int) float64 { return idf(uint64(chunks), uint64(t.Chunks)) }

// Stats returns the terms of a query in order, without repetitions, with their document
// frequencies, and the number of chunks in the index.
func (x *Index) Stats(q query.Query) (stats []TermStat, chunks int, err error) {
	err = x.read(func(snap *scorch.IndexSnapshot) error {
		n, err := snap.DocCount()
		if err != nil {
			return err
		}
		chunks = int(n)
		resolved, err := resolve(snap, NewQuery(q))
		if err != nil {
			return err
		}
		for _, q := range resolved.terms {
			t, err := lookUp(snap, q.term)
			if err != nil {
				return err
			}
			stats = append(stats, TermStat{q.term, int(t.freq)})
		}
		return nil
	})
	return stats, chunks, err
}

// Chunks returns the ids of all chunks in the index, in no particular order.
func (x *Index) Chunks() (ids []string, err error) {
	err = x.read(func(snap *scorch.IndexSnapshot) error {
		for _, s := range snap.Segments() {
			for it := s.DocNumbersLive().Iterator(); it.HasNext(); {
				id, err := s.DocID(uint64(it.Next()))
				if err != nil {
					return err
				}
				ids = append(ids, string(id))
			}
		}
		return nil
	})
	return ids, err
}
