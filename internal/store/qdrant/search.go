package qdrant

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	pb "github.com/qdrant/go-client/qdrant"
	"golang.org/x/sync/errgroup"

	"cairn/internal/store"
	"cairn/internal/store/keyword"
)

// A search requests edge more hits than it returns, to find out whether scores at the end
// of the list are equal. If so, it multiplies the number by edgeGrow.
const (
	edge     = 16
	edgeGrow = 4
	// sameScore is the largest difference between scores of equal vectors in float32.
	sameScore = 1e-6
	// maxHits is the largest number of hits to request.
	maxHits = 1 << 17
)

const (
	// oversampling is the ratio of the hits that are scored with the original vectors to
	// the hits requested, since quantised scores misplace some.
	oversampling = 2.0
	// searchEf is the minimum breadth of a search in the approximate index. The engine
	// uses the number of hits if that is larger.
	searchEf = 256
	// restrictedHits is the most chunks to check for phrases and exclusions.
	restrictedHits = 4096
	// symbolHits is the most definitions of a symbol that a search adds.
	symbolHits = 32
	// shardHits is the ratio of the points that a search of several shards may score to
	// its hits, since each shard scores its own best.
	shardHits = 4
)

// nearest returns the request for the chunks nearest to a vector.
func (c *Chunks) nearest(vector []float32, f store.Filter) *pb.QueryPoints {
	r := &pb.QueryPoints{
		CollectionName: c.name, Using: pb.PtrOf(denseVector), Query: pb.NewQueryDense(vector), Filter: condition(f),
		Params: &pb.SearchParams{HnswEf: pb.PtrOf(uint64(searchEf)), Quantization: &pb.QuantizationSearchParams{Rescore: pb.PtrOf(true), Oversampling: pb.PtrOf(oversampling)}},
	}
	if c.client.options.Exact {
		r.Params = exact()
	}
	return r
}

func exact() *pb.SearchParams {
	return &pb.SearchParams{Exact: pb.PtrOf(true), Quantization: &pb.QuantizationSearchParams{Ignore: pb.PtrOf(true)}}
}

// matching returns the request for the chunks that match terms best.
func (c *Chunks) matching(terms map[string]float64, f store.Filter) *pb.QueryPoints {
	indices, values := sparse(terms)
	return &pb.QueryPoints{CollectionName: c.name, Using: pb.PtrOf(wordsVector), Query: pb.NewQuerySparse(indices, values), Filter: condition(f)}
}

// leg is one list of a search: the best k points of a request that pass.
type leg struct {
	request *pb.QueryPoints
	k       int
	pass    func(scoredChunk) bool
	// cut prevents the leg from repeating the request with a higher limit.
	cut bool
}

// newLeg prepares a leg for k hits that pass f. The condition of r may let other paths pass.
func newLeg(r *pb.QueryPoints, k int, f store.Filter) *leg {
	r.Limit = pb.PtrOf(uint64(min(k, maxHits) + edge))
	return &leg{request: r, k: k, pass: func(p scoredChunk) bool { return below(p.Chunk, f) }}
}

// take returns the best k points of found that pass, by score and then by chunk. If points
// beyond found may be among them, take raises the limit of the request and ok is false.
func (l *leg) take(found []scoredChunk) (best []scoredChunk, ok bool) {
	limit := int(l.request.GetLimit())
	for _, p := range found {
		if l.pass(p) {
			best = append(best, p)
		}
	}
	all := l.cut || len(found) < limit || limit >= maxHits
	if !all && (len(best) < l.k || best[l.k-1].Score-found[len(found)-1].Score < sameScore) {
		l.request.Limit = pb.PtrOf(uint64(limit * edgeGrow))
		return nil, false
	}
	slices.SortFunc(best, func(a, b scoredChunk) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Chunk, b.Chunk))
	})
	return best[:min(l.k, len(best))], true
}

// run takes the points of a leg from those that its request found, and repeats the request until
// it has all of them.
func (c *Chunks) run(ctx context.Context, l *leg, found []scoredChunk) ([]scoredChunk, error) {
	for {
		if best, ok := l.take(found); ok {
			return best, nil
		}
		again, err := c.query(ctx, l.request)
		if err != nil {
			return nil, err
		}
		found = again[0]
	}
}

// query sends requests in a single call, and names the chunks that they find.
func (c *Chunks) query(ctx context.Context, requests ...*pb.QueryPoints) ([][]scoredChunk, error) {
	found, err := c.client.query(ctx, requests...)
	if err != nil {
		return nil, err
	}
	return c.named(ctx, found)
}

// query sends requests to one collection in a single call.
func (c *Client) query(ctx context.Context, requests ...*pb.QueryPoints) (found [][]*pb.ScoredPoint, err error) {
	r, err := read(ctx, c, c.grpc.Points().QueryBatch, &pb.QueryBatchPoints{CollectionName: requests[0].CollectionName, QueryPoints: requests})
	for _, result := range r.GetResult() {
		found = append(found, result.GetResult())
	}
	if err == nil && len(found) != len(requests) {
		err = fmt.Errorf("%d results for %d queries", len(found), len(requests))
	}
	return found, err
}

func hitsOf(chunks []scoredChunk) []store.Hit {
	hits := make([]store.Hit, len(chunks))
	for i, c := range chunks {
		hits[i] = c.Hit
	}
	return hits
}

// words prepares the keyword leg, or returns nil if it has no hits.
func (c *Chunks) words(q keyword.Query, k int, f store.Filter) *leg {
	terms := q.Terms()
	if k <= 0 || len(terms) == 0 {
		return nil
	}
	l := newLeg(c.matching(terms, f), k, f)
	isBelow := l.pass
	l.pass = func(p scoredChunk) bool { return p.Score > 0 && isBelow(p) }
	if q.Restricted() {
		l.cut = true
		l.request.Limit, l.request.WithPayload = pb.PtrOf(uint64(restrictedHits)), pb.NewWithPayloadInclude(textFields...)
		l.pass = func(p scoredChunk) bool { return p.Score > 0 && isBelow(p) && q.Admits(entryOf(p.payload)) }
	}
	return l
}

// SearchLegs implements store.LegSearcher. The engine works off a call in one thread, so
// SearchLegs makes a call for each leg at the same time, and more if scores are equal at the
// end of a list.
func (c *Chunks) SearchLegs(ctx context.Context, q store.LegsQuery) (hits store.LegHits, err error) {
	defer wrap(&err, "searching %s", c.name)
	if q.Vector != nil || q.Nearest > 0 {
		err = c.checkVector(q.Vector)
	}
	if err != nil || max(q.Words, q.Nearest) <= 0 {
		return hits, cmp.Or(err, ctx.Err())
	}
	if err := c.Open(ctx); err != nil {
		return hits, err
	}
	expanded, err := c.expand(ctx, q.Query)
	if err != nil {
		return hits, err
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		hits.Nearest, err = c.searchVectors(ctx, q, expanded)
		return err
	})
	both.Go(func() (err error) {
		hits.Keyword, hits.Cosines, err = c.searchWords(ctx, q, expanded)
		return err
	})
	return hits, both.Wait()
}

// searchVectors runs the vector leg, with the definitions of the symbol.
func (c *Chunks) searchVectors(ctx context.Context, q store.LegsQuery, expanded keyword.Query) ([]store.Hit, error) {
	if q.Nearest <= 0 {
		return nil, nil
	}
	c.nameAll()
	l := newLeg(c.nearest(q.Vector, q.Filter), q.Nearest, q.Filter)
	requests := []*pb.QueryPoints{l.request}
	switch {
	case expanded.Restricted():
		l.request.WithPayload = pb.NewWithPayloadInclude(textFields...)
	case q.Symbol != "":
		symbol := c.nearest(q.Vector, q.Filter)
		symbol.Limit, symbol.Filter = pb.PtrOf(uint64(symbolHits)), cmp.Or(symbol.Filter, &pb.Filter{})
		symbol.Filter.Must = append(symbol.Filter.Must, pb.NewMatchInt("under", symbolNumber(q.Symbol)))
		requests = append(requests, symbol)
	}
	found, err := c.query(ctx, requests...)
	if err != nil {
		return nil, err
	}
	nearest, err := c.run(ctx, l, found[0])
	if err != nil {
		return nil, err
	}
	if expanded.Restricted() {
		nearest = slices.DeleteFunc(nearest, func(p scoredChunk) bool { return !expanded.Admits(entryOf(p.payload)) })
	}
	if len(found) > 1 {
		nearest = merged(nearest, slices.DeleteFunc(found[1], func(p scoredChunk) bool { return !l.pass(p) }))
	}
	return hitsOf(nearest), nil
}

// searchWords runs the keyword leg, and returns the cosine of each hit if there is a vector.
func (c *Chunks) searchWords(ctx context.Context, q store.LegsQuery, expanded keyword.Query) ([]store.Hit, []float64, error) {
	l := c.words(expanded, q.Words, q.Filter)
	if l == nil {
		return nil, nil, nil
	}
	requests, limit := []*pb.QueryPoints{l.request}, l.request.GetLimit()
	if q.Vector != nil {
		requests = append(requests, c.cosines(q.Vector, l.request))
	}
	found, err := c.query(ctx, requests...)
	if err != nil {
		return nil, nil, err
	}
	matching, err := c.run(ctx, l, found[0])
	hits := hitsOf(matching)
	if err != nil || q.Vector == nil {
		return hits, nil, err
	}
	all := l.request.GetLimit() == limit && len(found[1]) < int(requests[1].GetLimit())
	known, err := c.fillCosines(ctx, q.Vector, hits, found[1], all)
	return hits, known, err
}

// merged adds the chunks in others to best, by score.
func merged(best, others []scoredChunk) []scoredChunk {
	for _, o := range others {
		if !slices.ContainsFunc(best, func(b scoredChunk) bool { return b.Chunk == o.Chunk }) {
			best = append(best, o)
		}
	}
	slices.SortStableFunc(best, func(a, b scoredChunk) int { return cmp.Compare(b.Score, a.Score) })
	return best
}

// cosines returns the request for the cosines of the points that another request finds.
func (c *Chunks) cosines(vector []float32, of *pb.QueryPoints) *pb.QueryPoints {
	return &pb.QueryPoints{
		CollectionName: c.name, Using: pb.PtrOf(denseVector), Query: pb.NewQueryDense(vector), Params: exact(),
		Prefetch: []*pb.PrefetchQuery{{Query: of.Query, Using: of.Using, Filter: of.Filter, Limit: of.Limit}},
		Limit:    pb.PtrOf(of.GetLimit() * shardHits),
	}
}

// fillCosines returns the cosine of each hit, NaN for a hit without a vector. It requests
// the cosines that are not among the known points, unless all vectors are known.
func (c *Chunks) fillCosines(ctx context.Context, vector []float32, hits []store.Hit, known []scoredChunk, all bool) ([]float64, error) {
	of := make(map[string]float64, len(known))
	for _, p := range known {
		of[p.Chunk] = p.Score
	}
	cosines := make([]float64, len(hits))
	var missing []int // indices of hits
	var chunks []string
	for i, h := range hits {
		cosine, ok := of[h.Chunk]
		if cosines[i] = cosine; !ok {
			cosines[i] = math.NaN()
			missing, chunks = append(missing, i), append(chunks, h.Chunk)
		}
	}
	if all || len(missing) == 0 {
		return cosines, nil
	}
	scores, err := c.Vectors().Scores(ctx, vector, chunks)
	if err != nil {
		return nil, err
	}
	for n, i := range missing {
		cosines[i] = scores[n]
	}
	return cosines, nil
}
