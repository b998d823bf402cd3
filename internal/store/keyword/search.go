package keyword

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"cairn/internal/store"
)

// Search returns at most k chunks that pass the filter and match at least one
// term, best first, ties by chunk id. No terms, no hits. The filter, phrases
// and exclusions decide what is returned, not its score.
func (x *Index) Search(ctx context.Context, kq store.KeywordQuery, k int, f store.Filter) (hits []store.Hit, err error) {
	q := parse(kq.Text)
	if k <= 0 || len(q.words) == 0 {
		return nil, ctx.Err()
	}
	err = x.read(func(snap *scorch.IndexSnapshot) error {
		hits, err = x.search(ctx, snap, q, kq.Fuzzy, k, f)
		return err
	})
	if err != nil {
		return nil, err
	}
	return hits, nil
}

// read calls fn with the current state. A panic there is a decoder's on
// damaged bytes.
func (x *Index) read(fn func(*scorch.IndexSnapshot) error) (err error) {
	x.open.RLock()
	defer x.open.RUnlock()
	snap, err := x.snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
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

func (x *Index) search(ctx context.Context, snap *scorch.IndexSnapshot, q query, fuzzy bool, k int, f store.Filter) ([]store.Hit, error) {
	docs, err := snap.DocCount()
	if err != nil || docs == 0 {
		return nil, err
	}
	if q, err = resolveFlags(snap, q); err != nil {
		return nil, err
	}
	expand := weigh
	if fuzzy {
		expand = addSimilar
	}
	terms, err := expand(snap, q.words, docs)
	if err != nil {
		return nil, err
	}
	lengths, avg, err := x.lengths.of(snap)
	if err != nil {
		return nil, err
	}
	sc := newScorer(terms, avg, min(k, int(docs)), func(seg int, term string, list segment.PostingsList) (*decodedList, error) {
		return x.decoded.get(snap.Segments()[seg], term, list)
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
	return name(snap, sc.best, k)
}

// weigh looks the terms up and weighs each by its count in the query and its rarity.
func weigh(snap *scorch.IndexSnapshot, words []asked, docs uint64) ([]weighted, error) {
	terms := make([]weighted, len(words))
	for i, w := range words {
		t, err := lookUp(snap, w.term)
		if err != nil {
			return nil, err
		}
		t.weight = w.count * idf(docs, t.freq)
		terms[i] = t
	}
	return terms, nil
}

// lookUp finds a term's postings in every segment; its weight is left 0.
func lookUp(snap *scorch.IndexSnapshot, term string) (weighted, error) {
	t := weighted{term: term, lists: make([]segment.PostingsList, len(snap.Segments()))}
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

// resolveFlags makes each dashed word a term if the index holds it with its
// dash, and an exclusion if not.
func resolveFlags(snap *scorch.IndexSnapshot, q query) (query, error) {
	for _, f := range q.flags {
		t, err := lookUp(snap, f.term)
		if err != nil {
			return q, err
		}
		if t.freq > 0 {
			q.words = ask(q.words, f.words)
		} else if len(f.not) > 0 {
			q.excluded = append(q.excluded, f.not)
		}
	}
	return q, nil
}

// admitted returns the chunks of a segment that pass the filter, hold all
// phrases and nothing excluded; nil means all.
func admitted(s *scorch.SegmentSnapshot, q query, f store.Filter) (*roaring.Bitmap, error) {
	var all *roaring.Bitmap
	var err error
	if !f.IsZero() {
		if all, err = filtered(s, f); err != nil {
			return nil, err
		}
	}
	for _, p := range q.phrases {
		bm, err := holding(s, p)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = bm
		} else {
			all = roaring.And(all, bm)
		}
	}
	for _, p := range q.excluded {
		bm, err := holding(s, p)
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

// name turns the best chunks found into at most k hits, best first.
func name(snap *scorch.IndexSnapshot, best []found, k int) ([]store.Hit, error) {
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

// TermStat says how common a term of a query is.
type TermStat struct {
	Term    string
	DocFreq int // chunks that hold the term
}

// Stats returns the terms of a query, each once and in order, with their
// frequencies, and the number of chunks held.
func (x *Index) Stats(query string) (stats []TermStat, chunks int, err error) {
	err = x.read(func(snap *scorch.IndexSnapshot) error {
		n, err := snap.DocCount()
		if err != nil {
			return err
		}
		chunks = int(n)
		q, err := resolveFlags(snap, parse(query))
		if err != nil {
			return err
		}
		for _, w := range q.words {
			t, err := lookUp(snap, w.term)
			if err != nil {
				return err
			}
			stats = append(stats, TermStat{w.term, int(t.freq)})
		}
		return nil
	})
	return stats, chunks, err
}
