package qdranttest

import (
	"cmp"
	"context"
	"hash/maphash"
	"math"
	"slices"
	"time"

	pb "github.com/qdrant/go-client/qdrant"
	"google.golang.org/protobuf/proto"
)

// Cost is the time that the engine takes. The fake does not wait, but adds it up: see
// Server.Spent.
type Cost struct {
	Call          time.Duration // every call that searches or reads points
	Dense, Sparse time.Duration // one search of the vectors, and one of the words
	Point         time.Duration // each point of a result
	Kilobyte      time.Duration // of payloads that are read from disk, selected or not
}

// Measured is the cost of Qdrant 1.16.3 with 33,244 chunks of some 2.3 kB on two cores. A
// search of the vectors took 1.7, 1.9 and 2.2 ms for 10, 100 and 300 points, one of the
// words .7, .9 and 1.3 ms. Payloads added 1.6 ms for 100 points and 5.5 ms for 300. A batch
// with both, the cosines and all payloads took 10.5 ms on both cores.
var Measured = Cost{
	Call: 300 * time.Microsecond, Dense: 1400 * time.Microsecond, Sparse: 400 * time.Microsecond,
	Point: 2 * time.Microsecond, Kilobyte: 8 * time.Microsecond,
}

// Spent returns the processor time that the calls so far would have taken on a server with
// Measured cost. A benchmark adds it to the times of cairn.
func (s *Server) Spent() time.Duration { return time.Duration(s.spent.Load()) }

// read returns the time for a point whose payload is read if with selects a part of it.
func (c Cost) read(p *point, with *pb.WithPayloadSelector) time.Duration {
	if len(with.GetInclude().GetFields()) == 0 && !with.GetEnable() {
		return c.Point
	}
	bytes := proto.Size(&pb.ScoredPoint{Payload: p.payload})
	return c.Point + c.Kilobyte*time.Duration(bytes)/1000
}

// search returns the time of a query without its points.
func (c Cost) search(q *pb.QueryPoints) time.Duration {
	if len(q.Prefetch) > 0 || q.Query.GetNearest().GetSparse() != nil {
		return c.Sparse
	}
	return c.Dense
}

// scored is a point with its score.
type scored struct {
	*point
	score float32
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
		hits, err := c.query(ctx, q)
		if err != nil {
			return nil, err
		}
		took += Measured.search(q)
		found := &pb.BatchResult{}
		for _, h := range hits {
			found.Result = append(found.Result, &pb.ScoredPoint{Id: h.pid, Payload: h.selected(q.WithPayload), Score: h.score, Vectors: c.vectors(h.point, q.WithVectors)})
			took += Measured.read(h.point, q.WithPayload)
		}
		out.Result = append(out.Result, found)
	}
	s.spent.Add(int64(took))
	return out, nil
}

// query returns the nearest of all points, or of those that the prefetches find.
func (c *collection) query(ctx context.Context, q *pb.QueryPoints) (hits []scored, err error) {
	passes, err := c.matcher(q.Filter)
	if err != nil {
		return nil, err
	}
	candidates := c.points
	if len(q.Prefetch) > 0 {
		candidates = map[string]*point{}
	}
	for _, p := range q.Prefetch {
		found, err := c.query(ctx, &pb.QueryPoints{Prefetch: p.Prefetch, Query: p.Query, Using: p.Using, Filter: p.Filter, Params: p.Params, Limit: p.Limit})
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			candidates[h.id] = h.point
		}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	switch v := q.Query.GetNearest().GetVariant().(type) {
	case *pb.VectorInput_Dense:
		var unit []float32
		if unit, err = c.unit(q.GetUsing(), v.Dense.Data); err == nil {
			hits, err = c.nearestDense(ctx, unit, q, candidates, passes)
		}
	case *pb.VectorInput_Sparse:
		var weights map[uint32]float32
		if weights, err = c.weights(q.GetUsing(), &pb.SparseVector{Indices: v.Sparse.Indices, Values: v.Sparse.Values}); err == nil {
			hits = c.nearestSparse(weights, candidates, passes)
		}
	default:
		err = invalid("the fake searches for the points nearest to a vector, not %v", q.Query)
	}
	if q.GetLimit() < 1 {
		err = invalid("the fake searches for a number of points")
	}
	if err != nil {
		return nil, err
	}
	order(hits)
	return hits[:min(len(hits), int(q.GetLimit()))], nil
}

var seed = maphash.MakeSeed()

// order sorts by score. Equal ones come as it happens, another way each run.
func order(hits []scored) {
	slices.SortFunc(hits, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(maphash.String(seed, a.id), maphash.String(seed, b.id)))
	})
}

func (c *collection) nearestDense(ctx context.Context, unit []float32, q *pb.QueryPoints, candidates map[string]*point, passes test) ([]scored, error) {
	asked := q.Params.GetQuantization()
	quantised := c.quantised && !c.server.options.Unquantised && !q.Params.GetExact() && !asked.GetIgnore()
	var query []float32
	if quantised {
		query = c.round(unit)
	}
	var hits []scored
	for _, p := range candidates {
		switch {
		case p.dense == nil || !passes(p):
		case len(hits)%4096 == 0 && ctx.Err() != nil:
			return nil, ctx.Err()
		case quantised:
			hits = append(hits, scored{p, dot(query, p.rounded)})
		default:
			hits = append(hits, scored{p, dot(unit, p.dense)})
		}
	}
	// Scalar quantisation rescores only when asked to, or by default with
	// nothing said; then the head alone, enlarged by the oversampling.
	if quantised && (asked.Rescore == nil || *asked.Rescore) {
		order(hits)
		head := int(math.Ceil(float64(q.GetLimit()) * max(1, asked.GetOversampling())))
		hits = hits[:min(head, len(hits))]
		for i := range hits {
			hits[i].score = dot(unit, hits[i].dense)
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

// nearestSparse scores the candidates that share an index with q. Each weight of the query
// is multiplied by the engine's ln((N-n+.5)/(n+.5)+1) over the points that have the vector.
func (c *collection) nearestSparse(q map[uint32]float32, candidates map[string]*point, passes test) []scored {
	n, df := 0, map[uint32]int{}
	for _, p := range c.points {
		if p.sparse != nil {
			n++
		}
		for index := range q {
			if _, ok := p.sparse[index]; ok {
				df[index]++
			}
		}
	}
	for index := range q {
		q[index] *= float32(math.Log((float64(n-df[index])+0.5)/(float64(df[index])+0.5) + 1))
	}
	var hits []scored
	for _, p := range candidates {
		sum, shared := float32(0), false
		for index, weight := range q {
			if w, ok := p.sparse[index]; ok {
				sum, shared = sum+weight*w, true
			}
		}
		if shared && passes(p) {
			hits = append(hits, scored{p, sum})
		}
	}
	return hits
}

// calibrate sets the range of the quantisation to the quantile of all numbers. The caller must
// hold c.mu.
func (c *collection) calibrate() {
	var all []float32
	for _, p := range c.points {
		all = append(all, p.dense...)
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	cut := 0
	if q := c.created.QuantizationConfig.GetScalar().Quantile; q != nil && *q < 1 && len(c.points) >= 127 {
		cut = min((len(all)-1)/2, int(float32(len(all))*(1-*q)/2))
	}
	c.low = all[cut]
	c.step = max((all[len(all)-1-cut]-c.low)/127, math.SmallestNonzeroFloat32)
	c.calibrated = len(c.points)
	for _, p := range c.points {
		p.rounded = c.round(p.dense)
	}
}

// put adds or replaces a point. The caller must hold c.mu.
func (c *collection) put(p *point) {
	c.points[p.id] = p
	if !c.quantised || p.dense == nil {
		return
	}
	if len(c.points) >= 2*c.calibrated {
		c.calibrate()
		return
	}
	p.rounded = c.round(p.dense)
}

// round returns the numbers that the engine's scalar quantisation stores for v: a byte of 0 to
// 127 stands for low + byte*step.
func (c *collection) round(v []float32) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = c.low + c.step*float32(math.Round(float64(min(max((x-c.low)/c.step, 0), 127))))
	}
	return out
}
