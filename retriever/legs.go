package retriever

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"cairn/internal/base/observe"
	"cairn/internal/store"
	"cairn/internal/text/query"
)

// legs holds the hits of the two indexes. Either list may be empty.
type legs struct {
	mode            Mode // that ran
	depth           int  // chunks requested from the keyword leg, or from the only leg
	keyword, vector []store.Hit
	embedding       []float32 // of the query; nil if there is none
	failed          error     // why the vector leg has no hits
	// cosines holds the cosine of each keyword hit, NaN for a chunk without a
	// vector. It is nil if the search has no vector leg.
	cosines []float64
	fuzzy   bool // the keyword hits match near spellings
	full    bool // a leg returned depth hits, so there may be more
	missing bool // the mode needs vectors, and some or all are missing
}

// nearest returns how many chunks are requested from the vector leg. In a hybrid search each
// keyword hit has its cosine, so the vector leg only adds chunks without words of the query.
// They need no deep list: their scores fall with their cosines.
func (l *legs) nearest() int {
	if l.mode == Hybrid {
		return max(1, l.depth/3)
	}
	return l.depth
}

// ask runs the legs that the mode needs, for at most depth chunks each: by Legs if
// that is set, otherwise concurrently. It fails if the keyword leg does.
func (s *search) ask(ctx context.Context, depth int) (*legs, error) {
	q, mode := s.parsed, s.Mode
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
	embedded := make(chan []float32, 1)
	var cosineErr error
	keywords, both := errgroup.WithContext(ctx)
	if mode != Semantic {
		keywords.Go(func() error {
			err := s.askKeywords(both, l, q)
			if err == nil && mode == Hybrid && len(l.keyword) > 0 {
				if embedding := <-embedded; embedding != nil {
					l.cosines, cosineErr = s.cosines(both, l.keyword, embedding)
				}
			}
			return err
		})
	}
	if mode != Keyword { // the embedding takes longest, so it does not wait for another processor
		l.embedding, l.failed = s.queryVector(both, q.Words)
		embedded <- l.embedding
		if l.embedding != nil {
			timer := observe.Begin(both, observe.Vectors)
			l.vector, l.failed = s.sources.Vectors.Search(both, l.embedding, l.nearest(), s.Filter)
			timer.End(both)
		}
	}
	if err := keywords.Wait(); err != nil {
		return nil, err
	}
	if l.failed == nil { // the store may have failed between the two requests
		l.failed = cosineErr
	}
	return l, ctx.Err()
}

// askKeywords runs the keyword leg. If it finds few documents, it looks for longer words too.
func (s *search) askKeywords(ctx context.Context, l *legs, q query.Query) (err error) {
	defer observe.Begin(ctx, observe.Keyword).End(ctx)
	l.keyword, err = s.sources.Keyword.Search(ctx, q, l.depth, s.Filter)
	if err == nil && l.few() && !q.Fuzzy {
		var longer []store.Hit
		longer, err = s.sources.Keyword.Search(ctx, q.WithPrefixes(), l.depth, s.Filter)
		l.addBelow(longer)
	}
	if err != nil {
		return fmt.Errorf("searching keywords: %w", err)
	}
	return nil
}

// complete prepares the hits of the legs for blending. If the vector leg failed or the
// index has no vectors, the search becomes a keyword search.
func (s *search) complete(ctx context.Context, l *legs) error {
	l.full = len(l.keyword) >= l.depth || len(l.vector) >= l.nearest()
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
	if l.fuzzy { // ask looked up the cosines before these hits were found
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
	_, symbol := identifier(strings.TrimSpace(s.Query.Text))
	words := 0
	if s.Mode == Hybrid {
		words = l.depth
	}
	hits, err := s.sources.Legs.SearchLegs(ctx, store.LegsQuery{Query: s.parsed, Vector: l.embedding, Words: words, Nearest: l.nearest(), Filter: s.Filter, Symbol: symbol})
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

// cosines looks up the cosine of each hit.
func (s *search) cosines(ctx context.Context, hits []store.Hit, vector []float32) ([]float64, error) {
	cosines, err := s.sources.Vectors.Scores(ctx, vector, chunksOf(hits))
	if err != nil {
		return nil, fmt.Errorf("scoring keyword hits by their vectors: %w", err)
	}
	return cosines, nil
}

// keywordOnly turns l into the result of a keyword search. vectorErr is why the
// vectors cannot be searched, nil if there are none.
func (s *search) keywordOnly(ctx context.Context, l *legs, vectorErr error) error {
	if vectorErr != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.missing = true
		s.log.Warn("vector leg failed, answering from keywords", "error", vectorErr)
	}
	if l.mode == Semantic {
		if err := s.askKeywords(ctx, l, s.parsed); err != nil {
			return err
		}
	}
	l.mode, l.vector, l.cosines = Keyword, nil, nil
	l.full = len(l.keyword) >= l.depth
	if len(l.keyword) == 0 {
		return s.fuzzy(ctx, l)
	}
	return nil
}

// fuzzy searches for longer words and near spellings, since no chunk contains a word of
// the query as typed.
func (s *search) fuzzy(ctx context.Context, l *legs) error {
	err := s.askKeywords(ctx, l, s.parsed.WithFuzzy())
	l.fuzzy = len(l.keyword) > 0
	return err
}

const (
	// fewDocuments is the number of documents below which a search also looks for
	// longer words.
	fewDocuments = 10
	// belowExact is the best score of a chunk that only contains longer words, divided
	// by the lowest score of a chunk that contains a word as typed. Longer words are
	// weaker evidence, like a term one edit away in a fuzzy search.
	belowExact = 0.5
)

// few reports whether the keyword leg found some chunks, but in fewer than fewDocuments
// documents. The search then also matches words that begin with a word of the query.
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

// addBelow appends the hits for longer words that are not among the keyword hits yet,
// with scores below theirs. It returns the appended hits.
func (l *legs) addBelow(longer []store.Hit) []store.Hit {
	known := map[string]bool{}
	for _, h := range l.keyword {
		known[h.Chunk] = true
	}
	added := slices.DeleteFunc(longer, func(h store.Hit) bool { return known[h.Chunk] })
	if len(added) > 0 {
		scale := belowExact * l.keyword[len(l.keyword)-1].Score / added[0].Score
		for i := range added {
			added[i].Score *= scale
		}
	}
	l.keyword = append(l.keyword, added...)
	return added
}

// filterOperators removes the chunks from the vector leg that lack a required phrase
// or contain an excluded one. The keyword index applies the operators itself.
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

// queryVector returns the vector of text, or nil if the retriever has no vector leg.
// The vector is shared; the caller must not modify it.
func (r *Retriever) queryVector(ctx context.Context, text string) ([]float32, error) {
	if r.sources.Vectors == nil || r.sources.Embedder == nil {
		return nil, nil
	}
	v, ok := r.queries.Get(text)
	observe.Cached(ctx, ok)
	if ok {
		return v, nil
	}
	defer observe.Begin(ctx, observe.Embed).End(ctx)
	v, err := r.sources.Embedder.EmbedQuery(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("embedding the query: %w", err)
	}
	r.queries.Add(text, v)
	return v, nil
}
