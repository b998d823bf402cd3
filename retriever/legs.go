package retriever

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"cairn/internal/observe"
	"cairn/internal/query"
	"cairn/internal/store"
)

// legs is what the two indexes answered. Either list may be empty.
type legs struct {
	mode            Mode // the one that ran
	keyword, vector []store.Hit
	// cosines holds the cosine of every keyword hit; NaN where there is no
	// vector. Nil when the search has no vector leg.
	cosines []float64
	fuzzy   bool // the keyword hits are of near spellings
	full    bool // a leg had as many hits as it was asked for
	missing bool // vectors were wanted and are missing, all or in part
}

// legs runs the legs that the mode needs, both at the same time, for at most
// depth chunks each. A vector leg that fails or holds nothing makes the search a
// keyword search; a keyword leg that fails is an error.
func (s *search) legs(ctx context.Context, depth int) (legs, error) {
	l := legs{mode: s.Mode}
	vector, vectorErr, err := s.ask(ctx, &l, depth)
	if err != nil {
		return l, err
	}
	l.full = len(l.keyword) >= depth || len(l.vector) >= depth
	s.trace.found(&l, depth, vectorErr)
	if s.Mode != Keyword {
		l.missing = vector == nil || s.pending
		if vectorErr != nil || len(l.vector) == 0 && l.missing {
			return l, s.keywordOnly(ctx, &l, depth, vectorErr)
		}
	}
	if s.Mode != Semantic && len(l.keyword) == 0 {
		if err := s.fuzzy(ctx, &l, depth); err != nil {
			return l, err
		}
	}
	if s.sources.Legs == nil {
		if err := s.filterOperators(ctx, &l); err != nil {
			return l, err
		}
	}
	if s.Mode != Hybrid || len(l.keyword) == 0 || len(l.vector) == 0 {
		l.cosines = nil
		return l, nil
	}
	if l.fuzzy { // ask looked up those of the hits as typed, of which there were none
		if l.cosines, err = s.cosines(ctx, l.keyword, vector); err != nil {
			return l, s.keywordOnly(ctx, &l, depth, err)
		}
	}
	return l, nil
}

// ask searches both indexes, in one call or concurrently. It returns the vector of
// the query, nil where there is none, and apart from err the error of the vector
// leg.
func (s *search) ask(ctx context.Context, l *legs, depth int) (vector []float32, vectorErr, err error) {
	if s.sources.Legs != nil && s.Mode != Keyword {
		if vector, vectorErr = s.queryVector(ctx, embeddingText(s.parsed.Words)); vector != nil {
			return vector, nil, s.askTogether(ctx, l, vector, depth)
		}
	}
	var cosineErr error
	embedded := make(chan []float32, 1)
	g, gctx := errgroup.WithContext(ctx)
	if s.Mode != Semantic {
		g.Go(func() (err error) {
			if l.keyword, err = s.keywords(gctx, s.parsed, depth); err != nil || s.Mode != Hybrid || len(l.keyword) == 0 {
				return err
			}
			// This processor may have nothing else to do while the other searches vectors.
			if v := <-embedded; v != nil {
				l.cosines, cosineErr = s.cosines(gctx, l.keyword, v)
			}
			return nil // the vector leg reports why there is no vector
		})
	}
	if s.Mode != Keyword {
		g.Go(func() error {
			vector, vectorErr = s.queryVector(gctx, embeddingText(s.parsed.Words))
			embedded <- vector
			if vector != nil {
				l.vector, vectorErr = s.nearest(gctx, vector, depth)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	if vectorErr == nil { // the store may have failed between the two requests
		vectorErr = cosineErr
	}
	return vector, vectorErr, ctx.Err()
}

// askTogether searches both indexes in one call.
func (s *search) askTogether(ctx context.Context, l *legs, vector []float32, depth int) error {
	defer observe.Begin(ctx, observe.Vectors).End(ctx)
	hits, err := s.sources.Legs.SearchLegs(ctx, store.LegsQuery{Query: s.parsed, Keyword: s.Mode == Hybrid, Vector: vector, K: depth, Filter: s.Filter})
	if err != nil {
		return fmt.Errorf("searching keywords and vectors: %w", err)
	}
	l.keyword, l.vector, l.cosines = hits.Keyword, hits.Nearest, hits.Cosines
	return nil
}

// keywords searches the keyword index.
func (s *search) keywords(ctx context.Context, q query.Query, depth int) ([]store.Hit, error) {
	defer observe.Begin(ctx, observe.Keyword).End(ctx)
	hits, err := s.sources.Keyword.Search(ctx, q, depth, s.Filter)
	if err != nil {
		return nil, fmt.Errorf("searching keywords: %w", err)
	}
	return hits, nil
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
func (s *search) keywordOnly(ctx context.Context, l *legs, depth int, vectorErr error) (err error) {
	if vectorErr != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.missing = true
		s.log.Warn("vector leg failed, answering from keywords", "error", vectorErr)
	}
	if l.mode == Semantic {
		if l.keyword, err = s.keywords(ctx, s.parsed, depth); err != nil {
			return err
		}
	}
	l.mode, l.vector, l.cosines = Keyword, nil, nil
	l.full = len(l.keyword) >= depth
	if len(l.keyword) == 0 {
		return s.fuzzy(ctx, l, depth)
	}
	return nil
}

// fuzzy searches near spellings: no chunk holds a word of the query as typed.
func (s *search) fuzzy(ctx context.Context, l *legs, depth int) (err error) {
	if l.keyword, err = s.keywords(ctx, s.parsed.WithFuzzy(), depth); err != nil {
		return err
	}
	l.fuzzy = len(l.keyword) > 0
	return nil
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
