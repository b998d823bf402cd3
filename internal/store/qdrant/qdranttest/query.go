package qdranttest

import (
	"cmp"
	"context"
	"hash/maphash"
	"iter"
	"math"
	"slices"

	pb "github.com/qdrant/go-client/qdrant"
)

// scored is a point with its score.
type scored struct {
	*point
	score float32
}

// request holds the fields that a query and a prefetch have in common.
type request struct {
	prefetch []*pb.PrefetchQuery
	query    *pb.Query
	using    string
	filter   *pb.Filter
	params   *pb.SearchParams
	limit    uint64
}

// QueryBatch implements pb.PointsServer: all queries or none.
func (s *Server) QueryBatch(ctx context.Context, r *pb.QueryBatchPoints) (*pb.QueryBatchResponse, error) {
	c, err := s.resolve(r.CollectionName)
	if err != nil {
		return nil, err
	}
	took := Measured.Call
	out := &pb.QueryBatchResponse{}
	for _, q := range r.QueryPoints {
		if q.CollectionName != r.CollectionName || q.ScoreThreshold != nil || q.Offset != nil {
			return nil, invalid("the fake does not support query %v", q)
		}
		hits, err := c.query(ctx, request{q.Prefetch, q.Query, q.GetUsing(), q.Filter, q.Params, q.GetLimit()})
		if err != nil {
			return nil, err
		}
		took += Measured.search(q)
		found := &pb.BatchResult{}
		for _, h := range hits {
			found.Result = append(found.Result, &pb.ScoredPoint{Id: h.pid, Payload: h.selected(q.WithPayload), Score: h.score, Vectors: h.vectors(q.WithVectors)})
			took += Measured.read(h.point, q.WithPayload)
		}
		out.Result = append(out.Result, found)
	}
	s.spent.Add(int64(took))
	return out, nil
}

func (c *collection) query(ctx context.Context, r request) ([]scored, error) {
	passes, err := c.matcher(r.filter)
	if err != nil {
		return nil, err
	}
	if r.limit < 1 || r.query.GetNearest() == nil {
		return nil, invalid("the fake searches for a number of nearest points")
	}
	var lists [][]scored
	for _, p := range r.prefetch {
		list, err := c.query(ctx, request{p.Prefetch, p.Query, p.GetUsing(), p.Filter, p.Params, p.GetLimit()})
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	hits, err := c.nearest(ctx, r, passes, lists)
	if err != nil {
		return nil, err
	}
	order(hits)
	return hits[:min(len(hits), int(r.limit))], nil
}

var seed = maphash.MakeSeed()

// order sorts by score. Equal ones come as it happens, another way each run.
func order(hits []scored) {
	slices.SortFunc(hits, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(maphash.String(seed, a.id), maphash.String(seed, b.id)))
	})
}

// nearest scores the points of the prefetches, or all. c.mu is held.
func (c *collection) nearest(ctx context.Context, r request, passes test, lists [][]scored) ([]scored, error) {
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
	switch v := r.query.GetNearest().GetVariant().(type) {
	case *pb.VectorInput_Dense:
		params, ok := c.dense[r.using]
		if !ok {
			return nil, invalid("Wrong input: Not existing vector name error: %s", r.using)
		}
		if len(v.Dense.Data) != int(params.Size) {
			return nil, invalid("Wrong input: Vector dimension error: expected dim: %d, got %d", params.Size, len(v.Dense.Data))
		}
		return c.nearestDense(ctx, normalised(v.Dense.Data, params.Distance), r, candidates)
	case *pb.VectorInput_Sparse:
		params, ok := c.sparse[r.using]
		if !ok {
			return nil, invalid("Wrong input: Not existing vector name error: %s", r.using)
		}
		q, err := sparseVector(v.Sparse.Indices, v.Sparse.Values)
		if err != nil {
			return nil, err
		}
		return c.nearestSparse(q, params, r.using, passes), nil
	}
	return nil, invalid("the fake takes vectors as queries, not %v", r.query)
}

func (c *collection) nearestDense(ctx context.Context, q []float32, r request, candidates iter.Seq[*point]) ([]scored, error) {
	quantised := c.created.QuantizationConfig.GetScalar() != nil && !c.server.options.Unquantised
	asked := r.params.GetQuantization()
	if r.params.GetExact() || asked.GetIgnore() {
		quantised = false
	}
	var hits []scored
	var query *code
	if quantised {
		query = c.code(q)
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
		head := int(math.Ceil(float64(r.limit) * max(1, asked.GetOversampling())))
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
func (c *collection) nearestSparse(q map[uint32]float32, params *pb.SparseVectorParams, using string, passes test) []scored {
	n, df := 0, map[uint32]int{}
	for _, p := range c.points {
		v, ok := p.sparse[using]
		if ok {
			n++
		}
		for index := range q {
			if _, ok := v[index]; ok {
				df[index]++
			}
		}
	}
	if params.GetModifier() == pb.Modifier_Idf {
		for index := range q {
			q[index] *= float32(math.Log((float64(n-df[index])+0.5)/(float64(df[index])+0.5) + 1))
		}
	}
	var hits []scored
	for _, p := range c.points {
		sum, shared := float32(0), false
		for index, weight := range q {
			if w, ok := p.sparse[using][index]; ok {
				sum, shared = sum+weight*w, true
			}
		}
		if shared && passes(p) {
			hits = append(hits, scored{p, sum})
		}
	}
	return hits
}
