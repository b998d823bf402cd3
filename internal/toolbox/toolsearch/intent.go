package toolsearch

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"cairn/internal/store/legs"
	"cairn/internal/text/query"
)

// depth and partDepth are the numbers of hits of each leg for an intent and for a part.
const (
	depth     = 100
	partDepth = 30
)

// intentQuery is the search for an intent. Its units are the whole intent and what its parts
// request, unless that is the whole intent.
type intentQuery struct {
	units    []unit
	legs     Legs
	tools    int
	ids      map[string]bool
	degraded bool
	chance   float64 // the model's MinSimilarity
}

// unit is one text of the query, with the values that calibrate the scores of all tools.
type unit struct {
	vector   []float32
	hits     legs.Hits
	best     float64 // BM25
	nearest  float64
	evidence float64
	weight   float64 // of the keyword leg
}

func (q *intentQuery) add(id string) { q.ids[id] = true }

// partVectors returns the vectors of the parts, nil without an embedder. An intent of one
// part is its own part.
func (q *intentQuery) partVectors() [][]float32 {
	var list [][]float32
	units := q.units[1:]
	if len(units) == 0 {
		units = q.units
	}
	for _, u := range units {
		if u.vector != nil {
			list = append(list, u.vector)
		}
	}
	return list
}

// searchIntent runs both legs for the intent and its parts.
func (x *Index) searchIntent(ctx context.Context, intent string, parts []Part, which Legs) (*intentQuery, error) {
	texts := []string{intent}
	if len(parts) > 1 || parts[0].Request != parts[0].Text {
		for _, p := range parts {
			texts = append(texts, p.Request)
		}
	}
	q := &intentQuery{legs: which, tools: x.Len(), ids: map[string]bool{}, degraded: !x.legs.HasVectors()}
	if x.options.Embedder != nil {
		q.chance = x.options.Embedder.Description().NearEnough()
	}
	vectors, err := x.embedTexts(ctx, texts)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		x.options.Logger.Warn("embedding an intent", "error", err)
		q.degraded = true
	}
	q.units = make([]unit, len(texts))
	err = parallel(ctx, len(texts), func(ctx context.Context, i int) (err error) {
		k := depth
		if i > 0 {
			k = partDepth
		}
		q.units[i], err = x.searchText(ctx, texts[i], vectors[i], k, which)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range q.units {
		for _, found := range append(q.units[i].hits.Cosines, q.units[i].hits.Words) {
			for id := range found {
				q.add(id)
			}
		}
	}
	return q, nil
}

// searchText runs both legs for one text. A nil vector means that there is none.
func (x *Index) searchText(ctx context.Context, text string, vector []float32, k int, which Legs) (u unit, err error) {
	u.vector = vector
	q := query.Query{Words: plain(text)}
	switch which {
	case SemanticOnly:
		q.Words = ""
	case KeywordOnly:
		vector = nil
	}
	if u.hits, err = x.legs.Search(ctx, q, vector, k); err != nil {
		err = fmt.Errorf("searching tools: %w", err)
	}
	return u, err
}

// embedTexts embeds the texts concurrently. All vectors are nil without an embedder and
// after an error.
func (x *Index) embedTexts(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	if x.options.Embedder == nil {
		return vectors, nil
	}
	err := parallel(ctx, len(texts), func(ctx context.Context, i int) (err error) {
		vectors[i], err = x.embed(ctx, texts[i])
		return err
	})
	if err != nil {
		return make([][]float32, len(texts)), err
	}
	return vectors, nil
}

// parallel calls fn for the numbers below n, on all processors, and returns its first error.
func parallel(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error { return fn(ctx, i) })
	}
	return g.Wait()
}

// embed returns the vector of a text, from the cache if possible. The caller must not
// change it.
func (x *Index) embed(ctx context.Context, text string) ([]float32, error) {
	if v, ok := x.queries.Get(text); ok {
		return v, nil
	}
	v, err := x.options.Embedder.EmbedQuery(ctx, text)
	if err != nil {
		return nil, err
	}
	x.queries.Add(text, v)
	return v, nil
}

// blend calibrates the units and scores every tool found.
func (x *Index) blend(ctx context.Context, q *intentQuery) ([]Candidate, error) {
	ids := x.known(slices.Sorted(maps.Keys(q.ids))) // a store can have tools that the catalogue does not have yet
	cs, err := x.score(ctx, q, ids, true)
	for i := range cs {
		cs[i].Alpha = 1
	}
	return cs, err
}

// score returns the candidates for tools. calibrate makes them the tools that calibrate the
// units.
func (x *Index) score(ctx context.Context, q *intentQuery, ids []string, calibrate bool) ([]Candidate, error) {
	cs := make([]Candidate, len(ids))
	for i, id := range ids {
		cs[i] = Candidate{ID: id, PartNumber: -1}
	}
	for n := range q.units {
		u := &q.units[n]
		raw, err := x.rawLegs(ctx, u, q.legs, ids)
		if err != nil {
			return nil, err
		}
		if calibrate {
			u.calibrate(raw, q)
		}
		for i := range cs {
			l := raw[i]
			u.weigh(&l)
			c := &cs[i]
			if n == 0 {
				c.Whole = l
				continue
			}
			c.partScores = append(c.partScores, l.Score)
			if c.Part == nil || l.Score > c.Part.Score {
				c.Part, c.PartNumber = &l, n-1
			}
		}
	}
	for i := range cs {
		cs[i].Hybrid = join(cs[i].Whole, cs[i].Part)
	}
	return cs, nil
}

// rawLegs returns the raw scores of tools. It computes the cosines that the searches did
// not return.
func (x *Index) rawLegs(ctx context.Context, u *unit, which Legs, ids []string) ([]Leg, error) {
	list := make([]Leg, len(ids))
	for i, id := range ids {
		list[i].BM25 = u.hits.Words[id]
	}
	if u.vector == nil || which == KeywordOnly {
		return list, nil
	}
	if err := x.legs.Complete(ctx, &u.hits, u.vector, ids); err != nil {
		return nil, fmt.Errorf("comparing tools: %w", err)
	}
	for i, id := range ids {
		list[i].setCosines(&u.hits, id)
	}
	return list, nil
}

// setCosines sets the cosines of a tool. They are 0 without vectors.
func (l *Leg) setCosines(h *legs.Hits, id string) {
	if l.NameCosine, l.TextCosine = h.Cosines[0][id], h.Cosines[1][id]; math.IsNaN(l.NameCosine) {
		l.NameCosine, l.TextCosine, l.Imputed = 0, 0, true
	}
}
