package toolsearch

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"cairn/internal/store/legs"
	"cairn/internal/text/query"
	"cairn/models"
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
}

// unit is one text of the query, with the values that calibrate the scores of all tools.
type unit struct {
	vector  []float32
	hits    legs.Hits
	best    float64 // BM25
	nearest float64
	weight  float64 // of the keyword leg
}

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

// searchIntent splits the intent and runs both legs for it and its parts, which it sets in r. It
// searches for the whole intent while the reader splits it.
func (x *Index) searchIntent(ctx context.Context, intent string, r *Ranking, which Legs) (_ *intentQuery, err error) {
	g, searching := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	search := func(u *unit, text string, k int) {
		g.Go(func() (err error) {
			*u, err = x.searchText(searching, text, k, which)
			return err
		})
	}
	var whole unit
	search(&whole, intent, depth)
	r.Parts, r.Split, err = x.Parts(searching, intent)
	requests := r.Parts
	if len(requests) == 1 && requests[0].Request == requests[0].Text {
		requests = nil
	}
	units := make([]unit, 1+len(requests))
	for i := range requests {
		search(&units[1+i], requests[i].Request, partDepth)
	}
	if err := cmp.Or(g.Wait(), err); err != nil {
		return nil, err
	}
	units[0] = whole
	q := &intentQuery{units: units, legs: which, tools: x.Len(), ids: map[string]bool{}, degraded: !x.legs.HasVectors()}
	for _, u := range q.units {
		q.degraded = q.degraded || x.options.Embedder != nil && which != KeywordOnly && u.vector == nil
		for _, found := range append(u.hits.Cosines, u.hits.Words) {
			for id := range found {
				q.ids[id] = true
			}
		}
	}
	return q, nil
}

// searchText runs both legs for one text, by words alone without an embedder and after its error.
func (x *Index) searchText(ctx context.Context, text string, k int, which Legs) (u unit, err error) {
	if x.options.Embedder != nil && which != KeywordOnly {
		if u.vector, err = x.embed(ctx, text); ctx.Err() != nil {
			return u, ctx.Err()
		} else if err != nil {
			x.options.Logger.Warn("embedding an intent", "error", err)
		}
	}
	var q query.Query
	if which != SemanticOnly {
		q.Words = plain(text)
	}
	if u.hits, err = x.legs.Search(ctx, q, u.vector, k); err != nil {
		err = fmt.Errorf("searching tools: %w", err)
	}
	return u, err
}

// embed returns the vector of a text. The caller must not change it.
func (x *Index) embed(ctx context.Context, text string) ([]float32, error) {
	return cached(x, func() ([]float32, error) { return x.options.Embedder.EmbedQuery(ctx, text) }, text)
}

// reader returns the model that reads requests, or nil without one or after its error.
func (x *Index) reader() models.Reader {
	if x.options.Reader == nil {
		return nil
	}
	r, err := x.options.Reader()
	if err != nil {
		x.options.Logger.Warn("opening the model that reads requests", "error", err)
		return nil
	}
	return r
}

// Pairs returns the logits with which the reader takes tools for the right ones, in the order of
// ids, or none without a reader or after its error. whole, if not empty, is the intent of which
// the request is a part.
func (x *Index) Pairs(ctx context.Context, request, whole string, ids []string) []float64 {
	r := x.reader()
	if r == nil {
		return nil
	}
	if whole != "" {
		request += " | " + whole
	}
	logits, keys := make([]float64, len(ids)), make([]answerKey, len(ids))
	var texts []string
	var unread []int // places in ids
	for i, id := range ids {
		text := ""
		if t, ok := x.Tool(id); ok {
			text = pairText(&t)
		}
		keys[i] = keyOf[float64](request, text)
		if v, ok := x.answers.Get(keys[i]); ok {
			logits[i] = v.(float64)
			continue
		}
		texts, unread = append(texts, text), append(unread, i)
	}
	if len(unread) == 0 {
		return logits
	}
	read, err := r.Rerank(ctx, request, texts)
	if err != nil || len(read) < len(texts) {
		x.options.Logger.Warn("reading tools with a request", "error", cmp.Or(err, context.DeadlineExceeded))
		return nil
	}
	for k, i := range unread {
		logits[i] = read[k]
		x.answers.Add(keys[i], read[k])
	}
	return logits
}

// score returns the candidates for tools. calibrate makes them the tools that calibrate the
// units.
func (x *Index) score(ctx context.Context, q *intentQuery, ids []string, calibrate bool) ([]Candidate, error) {
	cs := make([]Candidate, len(ids))
	for i, id := range ids {
		cs[i] = Candidate{ID: id, PartNumber: -1, Alpha: 1}
	}
	for n := range q.units {
		u := &q.units[n]
		raw, err := x.rawLegs(ctx, u, ids)
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
			c.partLegs = append(c.partLegs, l)
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
func (x *Index) rawLegs(ctx context.Context, u *unit, ids []string) ([]Leg, error) {
	list := make([]Leg, len(ids))
	for i, id := range ids {
		list[i].BM25 = u.hits.Words[id]
	}
	if u.vector == nil {
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
