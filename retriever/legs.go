package retriever

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"cairn/internal/observe"
	"cairn/internal/store"
)

// found is what the legs answered and under which conditions.
type found struct {
	legs
	mode    Mode
	fuzzy   bool
	full    bool // a leg had as many hits as it was asked for
	missing bool // vectors were wanted and are missing, all or in part
}

// find runs the legs that mode needs, both at the same time, for at most depth
// chunks each. A vector leg that fails or holds nothing makes the search a
// keyword search; a keyword leg that fails is an error.
func (r *Retriever) find(ctx context.Context, q Query, depth int, pending bool) (found, error) {
	f := found{mode: q.Mode}
	ops := parseOperators(q.Text)
	var vector []float32
	var vectorErr, completeErr error
	embedded := make(chan []float32, 1) // the query's vector, nil where there is none
	g, gctx := errgroup.WithContext(ctx)
	if q.Mode != Semantic {
		g.Go(func() (err error) {
			f.keyword, err = r.keywords(gctx, store.KeywordQuery{Text: q.Text}, depth, q.Filter)
			if err != nil {
				return fmt.Errorf("searching keywords: %w", err)
			}
			if q.Mode != Hybrid || len(f.keyword) == 0 {
				return nil
			}
			// While the vectors are searched this processor may have nothing else to do.
			if v := <-embedded; v != nil {
				completeErr = r.complete(gctx, &f.legs, v)
			}
			return nil // when the vectors are away, it is the other leg that says so
		})
	}
	if q.Mode != Keyword {
		g.Go(func() error {
			vector, vectorErr = r.topicVector(gctx, ops.plain)
			embedded <- vector
			if vector != nil {
				f.vector, vectorErr = r.nearest(gctx, vector, depth, q.Filter)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return f, err
	}
	if err := ctx.Err(); err != nil {
		return f, err
	}
	if vectorErr == nil { // they may have gone between two questions
		vectorErr = completeErr
	}
	f.full = len(f.keyword) >= depth || len(f.vector) >= depth
	witnessOf(ctx).found(&f, depth, vectorErr)
	if q.Mode != Keyword {
		f.missing = vector == nil || pending
		if vectorErr != nil || len(f.vector) == 0 && f.missing {
			return f, r.keywordOnly(ctx, &f, q, depth, vectorErr)
		}
	}
	if q.Mode != Semantic && len(f.keyword) == 0 {
		if err := r.similar(ctx, &f, q, depth); err != nil {
			return f, err
		}
	}
	if err := r.admit(ctx, &f, q, ops); err != nil {
		return f, err
	}
	if q.Mode == Hybrid && len(f.keyword) > 0 && len(f.vector) > 0 {
		if f.fuzzy {
			if err := r.complete(ctx, &f.legs, vector); err != nil {
				return f, r.keywordOnly(ctx, &f, q, depth, err)
			}
		}
		return f, nil
	}
	f.cosines = nil
	return f, nil
}

// keywords searches the keyword index.
func (r *Retriever) keywords(ctx context.Context, q store.KeywordQuery, depth int, f store.Filter) ([]store.Hit, error) {
	defer observe.Begin(ctx, observe.Keyword).End(ctx)
	return r.sources.Keyword.Search(ctx, q, depth, f)
}

// keywordOnly turns f into the result of a keyword search, since there are no
// vectors or, with an error, they cannot be asked.
func (r *Retriever) keywordOnly(ctx context.Context, f *found, q Query, depth int, vectorErr error) (err error) {
	if vectorErr != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		f.missing = true
		r.log.Warn("vector leg failed, answering from keywords", "error", vectorErr)
	}
	if f.mode == Semantic {
		f.keyword, err = r.keywords(ctx, store.KeywordQuery{Text: q.Text}, depth, q.Filter)
		if err != nil {
			return fmt.Errorf("searching keywords: %w", err)
		}
	}
	f.mode, f.vector, f.cosines = Keyword, nil, nil
	f.full = len(f.keyword) >= depth
	if len(f.keyword) == 0 {
		return r.similar(ctx, f, q, depth)
	}
	return nil
}

// similar is the rescue of a query whose words occur nowhere as typed.
func (r *Retriever) similar(ctx context.Context, f *found, q Query, depth int) (err error) {
	f.keyword, err = r.keywords(ctx, store.KeywordQuery{Text: q.Text, Fuzzy: true}, depth, q.Filter)
	if err != nil {
		return fmt.Errorf("searching similar keywords: %w", err)
	}
	f.fuzzy = len(f.keyword) > 0
	return nil
}

// topicVector returns the vector of what a query asks for, nil where no
// vectors are searched.
func (r *Retriever) topicVector(ctx context.Context, text string) ([]float32, error) {
	if r.sources.Vectors == nil || r.sources.Embedder == nil {
		return nil, nil
	}
	vector, err := r.embed(ctx, topic(text))
	if err != nil {
		return nil, fmt.Errorf("embedding the query: %w", err)
	}
	return vector, nil
}

// nearest searches the vectors.
func (r *Retriever) nearest(ctx context.Context, vector []float32, depth int, f store.Filter) ([]store.Hit, error) {
	defer observe.Begin(ctx, observe.Vectors).End(ctx)
	hits, err := r.sources.Vectors.Search(ctx, vector, depth, f)
	if err != nil {
		return nil, fmt.Errorf("searching vectors: %w", err)
	}
	return hits, nil
}

// embed returns the vector of a query. It is shared: do not change it.
func (r *Retriever) embed(ctx context.Context, text string) ([]float32, error) {
	v, ok := r.queries.Get(text)
	observe.Cached(ctx, ok)
	if ok {
		return v, nil
	}
	defer observe.Begin(ctx, observe.Embed).End(ctx)
	v, err := r.sources.Embedder.EmbedQuery(ctx, text)
	if err != nil {
		return nil, err
	}
	r.queries.Add(text, v)
	return v, nil
}

// complete looks up the cosines of all keyword hits.
func (r *Retriever) complete(ctx context.Context, l *legs, vector []float32) (err error) {
	ask := make([]string, len(l.keyword))
	for i, h := range l.keyword {
		ask[i] = h.Chunk
	}
	if l.cosines, err = r.sources.Vectors.Scores(ctx, vector, ask); err != nil {
		return fmt.Errorf("scoring keyword hits by their vectors: %w", err)
	}
	return nil
}

// operators is what the keyword syntax means for the vector leg.
type operators struct {
	plain    string // without what is excluded, and without quotes: what is embedded
	required bool   // holds a "phrase"
	excluded bool   // holds a -word or -"phrase"
}

// parseOperators reads the syntax of store.KeywordQuery. It only finds out what
// may be an operator; what is one, the keyword index decides.
func parseOperators(text string) operators {
	var o operators
	var plain strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		dash := strings.HasPrefix(rest, "-") && (i == 0 || isBlank(text[i-1]))
		if dash {
			rest = rest[1:]
		}
		if inner, n := quotation(rest); n > 0 {
			if dash {
				o.excluded = true
				n++
			} else {
				o.required = o.required || strings.TrimSpace(inner) != ""
				plain.WriteString(inner)
			}
			i += n
			continue
		}
		if dash && rest != "" && !isBlank(rest[0]) && rest[0] != '-' {
			end := strings.IndexAny(rest, " \t\n\r")
			if end < 0 {
				end = len(rest)
			}
			if end > 2 { // a longer word; -x and -la are flags
				o.excluded = true
				i += 1 + end
				continue
			}
		}
		plain.WriteByte(text[i])
		i++
	}
	o.plain = strings.Join(strings.Fields(plain.String()), " ")
	if o.plain == "" { // nothing but exclusions excludes nothing
		o = operators{plain: text}
	}
	return o
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// quotation returns the text between the quotes s begins with and the length of
// all three, 0 when s begins with none or it is not closed.
func quotation(s string) (inner string, n int) {
	for _, q := range [][2]string{{`"`, `"`}, {"“", "”"}} {
		if rest, ok := strings.CutPrefix(s, q[0]); ok {
			if end := strings.Index(rest, q[1]); end >= 0 {
				return rest[:end], len(q[0]) + end + len(q[1])
			}
		}
	}
	return "", 0
}

// admit takes out of the vector leg what the operators of the query forbid. A
// chunk passes when the keyword index returns it for the whole query. One that
// it does not return passes when no phrase is required and the query without
// its operators does not find it either: then it does not hold an excluded word.
// Such queries are rare, so both lists are read to their ends.
func (r *Retriever) admit(ctx context.Context, f *found, q Query, ops operators) error {
	if len(f.vector) == 0 || !ops.required && !ops.excluded {
		return nil
	}
	n, err := r.sources.Keyword.Count()
	if err != nil {
		return fmt.Errorf("counting chunks: %w", err)
	}
	ids := func(text string) (map[string]bool, error) {
		hits, err := r.keywords(ctx, store.KeywordQuery{Text: text}, max(n, 1), q.Filter)
		if err != nil {
			return nil, fmt.Errorf("searching keywords: %w", err)
		}
		set := make(map[string]bool, len(hits))
		for _, h := range hits {
			set[h.Chunk] = true
		}
		return set, nil
	}
	admitted, err := ids(q.Text)
	if err != nil {
		return err
	}
	var matching map[string]bool
	if !ops.required {
		if matching, err = ids(strings.NewReplacer(`"`, " ", "“", " ", "”", " ", " -", " ").Replace(" " + q.Text)); err != nil {
			return err
		}
	}
	f.vector = slices.DeleteFunc(f.vector, func(h store.Hit) bool {
		return !admitted[h.Chunk] && (ops.required || matching[h.Chunk])
	})
	return nil
}
