package retriever

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"cairn/internal/observe"
	"cairn/internal/query"
	"cairn/internal/store"
)

// legs is what the two indexes answered. Either list may be empty.
type legs struct {
	mode            Mode // the one that ran
	depth           int  // chunks that each leg was asked for
	keyword, vector []store.Hit
	embedding       []float32 // of the query; nil where there is none
	failed          error     // why the vector leg has no hits
	// cosines holds the cosine of every keyword hit; NaN where there is no
	// vector. Nil when the search has no vector leg.
	cosines []float64
	fuzzy   bool // the keyword hits are of near spellings
	full    bool // a leg had as many hits as it was asked for
	missing bool // vectors were wanted and are missing, all or in part
}

// ask runs the legs that mode needs, in one call or both at the same time, for at
// most depth chunks each. A keyword leg that fails is an error.
func (s *search) ask(ctx context.Context, q query.Query, mode Mode, depth int) (*legs, error) {
	l := &legs{mode: mode, depth: depth}
	if s.sources.Legs != nil && mode != Keyword {
		if l.embedding, l.failed = s.queryVector(ctx, q.Words); l.embedding != nil {
			return l, s.askTogether(ctx, l)
		}
		if mode == Semantic {
			return l, ctx.Err()
		}
		mode = Keyword // there is no embedding
	}
	var vectors sync.WaitGroup
	defer vectors.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	embedded := make(chan []float32, 1)
	if mode != Keyword {
		vectors.Go(func() {
			l.embedding, l.failed = s.queryVector(ctx, q.Words)
			embedded <- l.embedding
			if l.embedding != nil {
				l.vector, l.failed = s.nearest(ctx, l.embedding, depth)
			}
		})
	}
	var err, cosineErr error
	if mode != Semantic {
		timer := observe.Begin(ctx, observe.Keyword)
		l.keyword, err = s.sources.Keyword.Search(ctx, q, depth, s.Filter)
		if err == nil && l.few() && !q.Fuzzy {
			var longer []store.Hit
			longer, err = s.sources.Keyword.Search(ctx, q.WithPrefixes(), depth, s.Filter)
			l.addBelow(longer)
		}
		timer.End(ctx)
		if err != nil {
			return nil, fmt.Errorf("searching keywords: %w", err)
		}
	}
	if mode == Hybrid && len(l.keyword) > 0 {
		// This processor may have nothing else to do while the other searches vectors.
		if embedding := <-embedded; embedding != nil {
			l.cosines, cosineErr = s.cosines(ctx, l.keyword, embedding)
		}
	}
	vectors.Wait()
	if l.failed == nil { // the store may have failed between the two requests
		l.failed = cosineErr
	}
	return l, ctx.Err()
}

// complete makes of the answers of the indexes what the search blends. A vector leg
// that failed or holds nothing makes the search a keyword search.
func (s *search) complete(ctx context.Context, l *legs) error {
	l.full = len(l.keyword) >= l.depth || len(l.vector) >= l.depth
	s.trace.found(l)
	if s.Mode != Keyword {
		l.missing = l.embedding == nil || s.pending
		if l.failed != nil || len(l.vector) == 0 && l.missing {
			return s.keywordOnly(ctx, l, l.failed)
		}
	}
	if s.Mode != Semantic && len(l.keyword) == 0 {
		if err := s.fuzzy(ctx, l); err != nil {
			return err
		}
	}
	if s.sources.Legs == nil {
		if err := s.filterOperators(ctx, l); err != nil {
			return err
		}
	}
	if s.Mode != Hybrid || len(l.keyword) == 0 || len(l.vector) == 0 {
		l.cosines = nil
		return nil
	}
	if l.fuzzy { // ask looked up those of the hits as typed, of which there were none
		var err error
		if l.cosines, err = s.cosines(ctx, l.keyword, l.embedding); err != nil {
			return s.keywordOnly(ctx, l, err)
		}
	}
	return nil
}

// askTogether searches both indexes in one call.
func (s *search) askTogether(ctx context.Context, l *legs) error {
	defer observe.Begin(ctx, observe.Vectors).End(ctx)
	hits, err := s.sources.Legs.SearchLegs(ctx, store.LegsQuery{Query: s.parsed, Keyword: s.Mode == Hybrid, Vector: l.embedding, K: l.depth, Filter: s.Filter})
	if err != nil {
		return fmt.Errorf("searching keywords and vectors: %w", err)
	}
	l.keyword, l.vector, l.cosines = hits.Keyword, hits.Nearest, hits.Cosines
	if !l.few() {
		return nil
	}
	longer, err := s.sources.Keyword.Search(ctx, s.parsed.WithPrefixes(), l.depth, s.Filter)
	if err != nil {
		return fmt.Errorf("searching longer words: %w", err)
	}
	cosines, err := s.cosines(ctx, l.addBelow(longer), l.embedding)
	l.cosines = append(l.cosines, cosines...)
	return err
}

// nearest searches the vectors.
func (s *search) nearest(ctx context.Context, vector []float32, depth int) ([]store.Hit, error) {
	defer observe.Begin(ctx, observe.Vectors).End(ctx)
	hits, err := s.sources.Vectors.Search(ctx, vector, depth, s.Filter)
	if err != nil {
		return nil, fmt.Errorf("searching vectors: %w", err)
	}
	return hits, nil
}

// cosines looks up the cosine of each hit.
func (s *search) cosines(ctx context.Context, hits []store.Hit, vector []float32) ([]float64, error) {
	cosines, err := s.sources.Vectors.Scores(ctx, vector, chunksOf(hits))
	if err != nil {
		return nil, fmt.Errorf("scoring keyword hits by their vectors: %w", err)
	}
	return cosines, nil
}

// keywordOnly turns l into the result of a keyword search, because there are no
// vectors or, with an error, they cannot be searched.
func (s *search) keywordOnly(ctx context.Context, l *legs, vectorErr error) error {
	if vectorErr != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.missing = true
		s.log.Warn("vector leg failed, answering from keywords", "error", vectorErr)
	}
	if l.mode == Semantic {
		found, err := s.ask(ctx, s.parsed, Keyword, l.depth)
		if err != nil {
			return err
		}
		l.keyword = found.keyword
	}
	l.mode, l.vector, l.cosines = Keyword, nil, nil
	l.full = len(l.keyword) >= l.depth
	if len(l.keyword) == 0 {
		return s.fuzzy(ctx, l)
	}
	return nil
}

// fuzzy searches longer words or near spellings: no chunk holds a word of the query as
// typed.
func (s *search) fuzzy(ctx context.Context, l *legs) error {
	found, err := s.ask(ctx, s.parsed.WithFuzzy(), Keyword, l.depth)
	if err != nil {
		return err
	}
	l.keyword = found.keyword
	l.fuzzy = len(l.keyword) > 0
	return nil
}

const (
	// fewDocuments is how many documents with words of the query are enough.
	fewDocuments = 10
	// belowExact is the best score of a chunk that only has longer words, by the least
	// score of one that has words as typed: in a hybrid search they are the weaker
	// evidence, as a term one edit away is in a fuzzy search.
	belowExact = 0.5
)

// few reports whether some chunks were found by keyword, and of fewer than
// fewDocuments documents: then words that begin with those of the query count too.
func (l *legs) few() bool {
	documents := map[string]bool{}
	for _, h := range l.keyword {
		path, _, _, _ := store.SplitChunkID(h.Chunk)
		if documents[path] = true; len(documents) == fewDocuments {
			return false
		}
	}
	return len(l.keyword) > 0 && len(l.keyword) < l.depth
}

// addBelow adds the hits of longer words below those of the words as typed, and
// returns those that are new.
func (l *legs) addBelow(longer []store.Hit) []store.Hit {
	had := map[string]bool{}
	for _, h := range l.keyword {
		had[h.Chunk] = true
	}
	fresh := slices.DeleteFunc(longer, func(h store.Hit) bool { return had[h.Chunk] })
	if len(fresh) > 0 {
		scale := belowExact * l.keyword[len(l.keyword)-1].Score / fresh[0].Score
		for i := range fresh {
			fresh[i].Score *= scale
		}
	}
	l.keyword = append(l.keyword, fresh...)
	return fresh
}

// filterOperators takes the chunks out of the vector leg that lack a required
// phrase or hold an excluded one. The keyword leg observes operators by itself.
func (s *search) filterOperators(ctx context.Context, l *legs) error {
	if len(l.vector) == 0 || !s.parsed.Restricts() {
		return nil
	}
	admitted, err := s.sources.Keyword.Admits(ctx, s.parsed, chunksOf(l.vector))
	if err != nil {
		return fmt.Errorf("checking phrases and exclusions: %w", err)
	}
	var kept []store.Hit
	for i, h := range l.vector {
		if admitted[i] {
			kept = append(kept, h)
		}
	}
	l.vector = kept
	return nil
}

func chunksOf(hits []store.Hit) []string {
	ids := make([]string, len(hits))
	for i, h := range hits {
		ids[i] = h.Chunk
	}
	return ids
}
