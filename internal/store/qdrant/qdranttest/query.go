package qdranttest

import (
	"context"
	"hash/maphash"
	"math"
	"slices"

	pb "github.com/qdrant/go-client/qdrant"
)

// scored is a point with its score.
type scored struct {
	*point
	score float32
}

// request is what a query and a prefetch have in common.
type request struct {
	prefetch  []*pb.PrefetchQuery
	query     *pb.Query
	using     string
	filter    *pb.Filter
	params    *pb.SearchParams
	threshold *float32
	limit     *uint64
	offset    uint64
}

// Query implements pb.PointsServer.
func (s *Server) Query(ctx context.Context, r *pb.QueryPoints) (*pb.QueryResponse, error) {
	c, err := s.resolve(r.CollectionName)
	if err != nil {
		return nil, err
	}
	hits, err := c.query(ctx, request{r.Prefetch, r.Query, r.GetUsing(), r.Filter, r.Params, r.ScoreThreshold, r.Limit, r.GetOffset()})
	if err != nil {
		return nil, err
	}
	out := &pb.QueryResponse{}
	for _, h := range hits {
		out.Result = append(out.Result, &pb.ScoredPoint{Id: h.pid, Payload: h.selected(r.WithPayload), Score: h.score, Vectors: h.vectors(r.WithVectors)})
	}
	return out, nil
}

// QueryBatch implements pb.PointsServer: all queries or none.
func (s *Server) QueryBatch(ctx context.Context, r *pb.QueryBatchPoints) (*pb.QueryBatchResponse, error) {
	out := &pb.QueryBatchResponse{}
	for _, q := range r.QueryPoints {
		if q.CollectionName != r.CollectionName {
			return nil, invalid("query of collection %q in a batch of %q", q.CollectionName, r.CollectionName)
		}
		found, err := s.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		out.Result = append(out.Result, &pb.BatchResult{Result: found.Result})
	}
	return out, nil
}

func (c *collection) query(ctx context.Context, r request) ([]scored, error) {
	if err := c.checkFilter(r.filter); err != nil {
		return nil, err
	}
	limit := uint64(10)
	if r.limit != nil {
		if limit = *r.limit; limit < 1 {
			return nil, invalid("Validation error in body: [limit: value 0 invalid, must be 1 or larger]")
		}
	}
	if o := r.params.GetQuantization().GetOversampling(); r.params.GetQuantization().GetOversampling() != 0 && o < 1 {
		return nil, invalid("Validation error in body: [params.quantization.oversampling: value %v invalid, must be 1.0 or larger]", o)
	}
	var lists [][]scored
	for _, p := range r.prefetch {
		list, err := c.query(ctx, request{p.Prefetch, p.Query, p.GetUsing(), p.Filter, p.Params, p.ScoreThreshold, p.Limit, 0})
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	var hits []scored
	var err error
	switch q := r.query.GetVariant().(type) {
	case *pb.Query_Nearest:
		hits, err = c.nearest(ctx, q.Nearest, r, lists, int(limit+r.offset))
	case *pb.Query_Fusion:
		if q.Fusion != pb.Fusion_RRF || len(lists) == 0 {
			return nil, invalid("the fake fuses prefetches by RRF")
		}
		hits = fuse(lists)
	default:
		return nil, invalid("the fake knows no query %T", q)
	}
	if err != nil {
		return nil, err
	}
	if r.threshold != nil {
		hits = slices.DeleteFunc(hits, func(h scored) bool { return h.score < *r.threshold })
	}
	order(hits)
	hits = hits[min(len(hits), int(r.offset)):]
	return hits[:min(len(hits), int(limit))], nil
}

var seed = maphash.MakeSeed()

// order sorts by score. Equal ones come as it happens, another way each run.
func order(hits []scored) {
	slices.SortFunc(hits, func(a, b scored) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		x, y := maphash.String(seed, a.id), maphash.String(seed, b.id)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
}

func fuse(lists [][]scored) []scored {
	sums := map[*point]float32{}
	for _, list := range lists {
		for i, h := range list {
			sums[h.point] += 1 / float32(i+2) // k is 2, ranks count from 0
		}
	}
	var hits []scored
	for p, sum := range sums {
		hits = append(hits, scored{p, sum})
	}
	return hits
}

// nearest scores the points of the prefetches, or all. c.mu is held.
func (c *collection) nearest(ctx context.Context, in *pb.VectorInput, r request, lists [][]scored, limit int) ([]scored, error) {
	passes := matcher(r.filter)
	candidates := func(yield func(*point) bool) {
		if len(lists) == 0 {
			for _, p := range c.points {
				if passes(p) && !yield(p) {
					return
				}
			}
			return
		}
		seen := map[string]bool{}
		for _, list := range lists {
			for _, h := range list {
				if !seen[h.id] && passes(h.point) && !yield(h.point) {
					return
				}
				seen[h.id] = true
			}
		}
	}
	switch v := in.GetVariant().(type) {
	case *pb.VectorInput_Dense:
		params, ok := c.dense[r.using]
		if !ok {
			return nil, invalid("Wrong input: Not existing vector name error: %s", r.using)
		}
		if len(v.Dense.Data) != int(params.Size) {
			return nil, invalid("Wrong input: Vector dimension error: expected dim: %d, got %d", params.Size, len(v.Dense.Data))
		}
		return c.nearestDense(ctx, normalised(v.Dense.Data, params.Distance), r, candidates, limit)
	case *pb.VectorInput_Sparse:
		params, ok := c.sparse[r.using]
		if !ok {
			return nil, invalid("Wrong input: Not existing vector name error: %s", r.using)
		}
		q, err := sparseVector(v.Sparse.Indices, v.Sparse.Values)
		if err != nil {
			return nil, err
		}
		return c.nearestSparse(q, params, r), nil
	}
	return nil, invalid("the fake takes vectors as queries, not %T", in.GetVariant())
}

func (c *collection) nearestDense(ctx context.Context, q []float32, r request, candidates func(func(*point) bool), limit int) ([]scored, error) {
	quantised := c.created.QuantizationConfig.GetScalar() != nil && !c.server.options.Unquantised
	asked := r.params.GetQuantization()
	if r.params.GetExact() || asked.GetIgnore() {
		quantised = false
	}
	var hits []scored
	var query *code
	if quantised {
		query = c.encodeQuery(q)
	}
	for p := range candidates {
		v, ok := p.dense[r.using]
		if !ok {
			continue
		}
		if len(hits)%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if quantised {
			hits = append(hits, scored{p, c.approximate(query, p.codes[r.using])})
		} else {
			hits = append(hits, scored{p, dot(q, v)})
		}
	}
	// Scalar quantisation rescores only when asked to, or by default with
	// nothing said; then the head alone, enlarged by the oversampling.
	if quantised && (asked.Rescore == nil || *asked.Rescore) {
		order(hits)
		head := int(math.Ceil(float64(limit) * max(1, asked.GetOversampling())))
		hits = hits[:min(head, len(hits))]
		for i := range hits {
			hits[i].score = dot(q, hits[i].dense[r.using])
		}
	}
	return hits, nil
}

func dot(a, b []float32) float32 {
	sum := float32(0)
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// nearestSparse scores the points that share an index with q. With the IDF
// modifier each weight of the query is multiplied by the engine's
// ln((N-n+.5)/(n+.5)+1) over the points that have the vector.
func (c *collection) nearestSparse(q map[uint32]float32, params *pb.SparseVectorParams, r request) []scored {
	n := c.sparsely[r.using]
	sums := map[string]float32{}
	for index, weight := range q {
		list := c.postings[r.using][index]
		if params.GetModifier() == pb.Modifier_Idf {
			df := float32(len(list))
			weight *= float32(math.Log(float64((float32(n)-df+0.5)/(df+0.5) + 1)))
		}
		for id, w := range list {
			sums[id] += weight * w
		}
	}
	var hits []scored
	passes := matcher(r.filter)
	for id, sum := range sums {
		if p := c.points[id]; passes(p) {
			hits = append(hits, scored{p, sum})
		}
	}
	return hits
}
