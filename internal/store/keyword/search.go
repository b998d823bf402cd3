package keyword

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"cairn/internal/query"
	"cairn/internal/store"
)

// Search returns at most k chunks that pass the filter and match at least one
// term, best first, ties by chunk id. No terms, no hits. The filter, phrases
// and exclusions decide what is returned, not its score.
func (x *Index) Search(ctx context.Context, q query.Query, k int, f store.Filter) (hits []store.Hit, err error) {
	analysed := NewQuery(q)
	if k <= 0 || len(analysed.terms) == 0 {
		return nil, ctx.Err()
	}
	err = x.read(func(snap *scorch.IndexSnapshot) error {
		hits, err = x.search(ctx, snap, analysed, k, f)
		return err
	})
	if err != nil {
		return nil, err
	}
	return hits, nil
}

// Admits implements store.Keyword.
func (x *Index) Admits(ctx context.Context, q query.Query, chunks []string) ([]bool, error) {
	held := make(map[string]bool, len(chunks))
	err := x.read(func(snap *scorch.IndexSnapshot) error {
		resolved, err := resolve(snap, NewQuery(q))
		if err != nil {
			return err
		}
		for _, s := range snap.Segments() {
			if err := ctx.Err(); err != nil {
				return err
			}
			asked, err := s.Segment().DocNumbers(chunks)
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
			for it := roaring.And(asked, allowed).Iterator(); it.HasNext(); {
				id, err := s.DocID(uint64(it.Next()))
				if err != nil {
					return err
				}
				held[string(id)] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(chunks))
	for i, c := range chunks {
		out[i] = held[c]
	}
	return out, nil
}

// read calls fn with the current state. A panic there comes from a decoder that
// met damaged bytes.
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
	if err == nil && (q.width != exact || lacksWord(q.terms, terms)) {
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
	sc := newScorer(terms, avg, min(k, int(docs)), func(seg int, term string, list segment.PostingsList, buffer *decodedList) (*decodedList, error) {
		return x.decoded.get(snap.Segments()[seg], term, list, buffer)
	})
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
		if err := sc.segment(i, allowed, lengths[i]); err != nil {
			return nil, err
		}
	}
	sc.release()
	return hitsOf(snap, sc.best, k)
}

// exactTerms looks the terms of a query up and weighs each by its count there
// and its rarity.
func exactTerms(snap *scorch.IndexSnapshot, asked []queryTerm, docs uint64) ([]weightedTerm, error) {
	terms := make([]weightedTerm, len(asked))
	for i, a := range asked {
		t, err := lookUp(snap, a.term)
		if err != nil {
			return nil, err
		}
		t.weight = a.count * idf(docs, t.freq)
		terms[i] = t
	}
	return terms, nil
}

// lacksWord reports whether no chunk holds a word of the query.
func lacksWord(asked []queryTerm, found []weightedTerm) bool {
	for i, a := range asked {
		if a.written != "" && found[i].freq == 0 {
			return true
		}
	}
	return false
}

// lookUp finds a term's postings in every segment. It leaves the weight 0.
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

// resolve is q.Resolve with the terms of snap.
func resolve(snap *scorch.IndexSnapshot, q Query) (Query, error) {
	return q.Resolve(func(term string) (bool, error) {
		t, err := lookUp(snap, term)
		return t.freq > 0, err
	})
}

// admitted returns the chunks of a segment that pass the filter, hold all
// phrases and nothing excluded; nil means all.
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

// and intersects two sets of chunks; a nil all holds every chunk.
func and(all, some *roaring.Bitmap) *roaring.Bitmap {
	if all == nil {
		return some
	}
	return roaring.And(all, some)
}

// hitsOf names the best chunks found and returns the first k, best first.
func hitsOf(snap *scorch.IndexSnapshot, best []scoredChunk, k int) ([]store.Hit, error) {
	hits := make([]store.Hit, len(best))
	for i, b := range best {
		id, err := snap.Segments()[b.seg].DocID(uint64(b.doc))
		if err != nil {
			return nil, err
		}
		hits[i] = store.Hit{Chunk: string(id), Score: float64(b.score)}
	}
	slices.SortFunc(hits, func(a, b store.Hit) int {
		if c := cmp.Compare(b.Score, a.Score); c != 0 {
			return c
		}
		return cmp.Compare(a.Chunk, b.Chunk)
	})
	return hits[:min(k, len(hits))], nil
}

// TermStat is a term of a query with its document frequency.
type TermStat struct {
	Term    string
	DocFreq int // chunks that hold the term
}

// IDF is the rarity of the term in an index of so many chunks, as scores have it.
func (t TermStat) IDF(chunks int) float64 { return idf(uint64(chunks), uint64(t.DocFreq)) }

// Stats returns the terms of a query, each once and in order, with their
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
