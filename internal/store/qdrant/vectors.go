package qdrant

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	pb "github.com/qdrant/go-client/qdrant"

	"cairn/internal/store"
)

// Sizes of requests. A point of 384 numbers takes some 2 kB.
const (
	upsertPoints = 256
	askIDs       = 1000 // ids in one question
)

// A search asks for a few hits more than it returns, in order to see whether
// scores at the edge are equal, and for many more only when they are.
const (
	edge     = 16
	edgeGrow = 4
	// sameScore is how near scores of equal vectors are, since a float32 has 24 bits.
	sameScore = 1e-6
	// maxHits bounds the growth.
	maxHits = 1 << 17
)

// oversampling is how many times the hits asked for are scored with the
// original vectors: bytes alone misplace some.
const oversampling = 2.0

// searchEf is how wide the approximate index is searched at least. The engine
// takes the number of hits when that is more.
const searchEf = 256

// Vectors is a store.Vectors in a collection.
type Vectors struct {
	client *Client
	name   string // of the collection or its alias
	shape  shape
	gate   gate

	open  sync.Mutex
	ready bool // guarded by open
}

var _ store.Vectors = (*Vectors)(nil)

func vectorShape(dim int, model string) shape {
	return shape{dim: dim, model: model, fields: labelFields}
}

// start makes sure of the collection once.
func (v *Vectors) start(ctx context.Context) error {
	v.open.Lock()
	defer v.open.Unlock()
	if v.ready {
		return nil
	}
	err := v.client.first(ctx, v.name, v.shape)
	v.ready = err == nil
	return err
}

// check refuses a vector that the collection would not take.
func (v *Vectors) check(vector []float32) error {
	if len(vector) != v.shape.dim {
		return fmt.Errorf("vector of dimension %d, want %d", len(vector), v.shape.dim)
	}
	for _, x := range vector {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("vector holds %v, want finite numbers", x)
		}
	}
	return nil
}

// Update implements store.Vectors. Entries go first, so that a chunk is never
// missing; a batch that fails half way can be repeated.
func (v *Vectors) Update(ctx context.Context, entries []store.VectorEntry, stale []string) error {
	last := make(map[string]int, len(entries))
	for i := range entries {
		if err := v.check(entries[i].Vector); err != nil {
			return fmt.Errorf("updating %s: %s: %w", v.name, entries[i].Chunk, err)
		}
		last[entries[i].Chunk] = i
	}
	var points []*pb.PointStruct
	for i := range entries {
		if e := &entries[i]; last[e.Chunk] == i {
			points = append(points, &pb.PointStruct{Id: pointID(e.Chunk), Payload: chunkPayload(e.Chunk, e.Path, e.Labels), Vectors: pb.NewVectorsDense(e.Vector)})
		}
	}
	stale = slices.DeleteFunc(slices.Clone(stale), func(id string) bool { _, ok := last[id]; return ok })
	if err := v.start(ctx); err != nil {
		return fmt.Errorf("updating %s: %w", v.name, err)
	}
	defer v.gate.write()()
	if err := v.client.update(ctx, v.name, points, stale); err != nil {
		return fmt.Errorf("updating %s: %w", v.name, err)
	}
	return ctx.Err()
}

// update upserts points, and deletes those of the names.
func (c *Client) update(ctx context.Context, collection string, points []*pb.PointStruct, names []string) error {
	for piece := range slices.Chunk(points, upsertPoints) {
		r := &pb.UpsertPoints{CollectionName: collection, Wait: pb.PtrOf(true), Points: piece}
		if err := c.write(ctx, func(ctx context.Context) error {
			_, err := c.grpc.Points().Upsert(ctx, r)
			return err
		}); err != nil {
			return err
		}
	}
	for piece := range slices.Chunk(names, askIDs) {
		r := &pb.DeletePoints{CollectionName: collection, Wait: pb.PtrOf(true), Points: pb.NewPointsSelectorIDs(pointIDs(piece))}
		if err := c.write(ctx, func(ctx context.Context) error {
			_, err := c.grpc.Points().Delete(ctx, r)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Search implements store.Vectors.
func (v *Vectors) Search(ctx context.Context, query []float32, k int, f store.Filter) ([]store.Hit, error) {
	if err := v.check(query); err != nil {
		return nil, fmt.Errorf("searching %s: %w", v.name, err)
	}
	if k <= 0 {
		return nil, ctx.Err()
	}
	if err := v.start(ctx); err != nil {
		return nil, fmt.Errorf("searching %s: %w", v.name, err)
	}
	request := &pb.QueryPoints{
		CollectionName: v.name, Query: pb.NewQueryDense(query), Filter: condition(f),
		Params: &pb.SearchParams{HnswEf: pb.PtrOf(uint64(searchEf)), Quantization: &pb.QuantizationSearchParams{Rescore: pb.PtrOf(true), Oversampling: pb.PtrOf(oversampling)}},
	}
	if v.client.options.Exact {
		request.Params = exact()
	}
	defer v.gate.read()()
	hits, err := v.client.best(ctx, request, k, func(h store.Hit) bool { return below(h.Chunk, f.PathPrefix) })
	if err != nil {
		return nil, fmt.Errorf("searching %s: %w", v.name, err)
	}
	return hits, nil
}

func exact() *pb.SearchParams {
	return &pb.SearchParams{Exact: pb.PtrOf(true), Quantization: &pb.QuantizationSearchParams{Ignore: pb.PtrOf(true)}}
}

// best runs a query until it has the k best hits that pass, with all whose
// score equals the last one's, and returns them by score and then by chunk.
func (c *Client) best(ctx context.Context, request *pb.QueryPoints, k int, pass func(store.Hit) bool) ([]store.Hit, error) {
	request.WithPayload = pb.NewWithPayloadInclude("chunk")
	for limit := min(k, maxHits) + edge; ; limit *= edgeGrow {
		request.Limit = pb.PtrOf(uint64(limit))
		var found []*pb.ScoredPoint
		err := c.read(ctx, func(ctx context.Context) error {
			r, err := c.grpc.Points().Query(ctx, request)
			found = r.GetResult()
			return err
		})
		if err != nil {
			return nil, err
		}
		hits := make([]store.Hit, 0, len(found))
		for _, p := range found {
			h := store.Hit{Chunk: p.Payload["chunk"].GetStringValue(), Score: float64(p.Score)}
			if pass(h) {
				hits = append(hits, h)
			}
		}
		all := len(found) < limit || limit >= maxHits
		if !all && (len(hits) < k || hits[k-1].Score-float64(found[len(found)-1].Score) < sameScore) {
			continue
		}
		sortHits(hits)
		return hits[:min(k, len(hits))], nil
	}
}

func sortHits(hits []store.Hit) {
	slices.SortFunc(hits, func(a, b store.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Chunk, b.Chunk))
	})
}

// Scores implements store.Vectors. The scores are those of the original vectors.
func (v *Vectors) Scores(ctx context.Context, query []float32, chunks []string) ([]float64, error) {
	if err := v.check(query); err != nil {
		return nil, fmt.Errorf("scoring in %s: %w", v.name, err)
	}
	known := map[string]float64{}
	err := v.ask(ctx, chunks, func(ctx context.Context, ids []*pb.PointId) error {
		r, err := v.client.grpc.Points().Query(ctx, &pb.QueryPoints{
			CollectionName: v.name, Query: pb.NewQueryDense(query), Limit: pb.PtrOf(uint64(len(ids))), Params: exact(),
			Filter: &pb.Filter{Must: []*pb.Condition{pb.NewHasID(ids...)}}, WithPayload: pb.NewWithPayloadInclude("chunk"),
		})
		for _, p := range r.GetResult() {
			known[p.Payload["chunk"].GetStringValue()] = float64(p.Score)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("scoring in %s: %w", v.name, err)
	}
	scores := make([]float64, len(chunks))
	for i, chunk := range chunks {
		score, ok := known[chunk]
		if scores[i] = score; !ok {
			scores[i] = math.NaN()
		}
	}
	return scores, nil
}

// Has implements store.Vectors.
func (v *Vectors) Has(ctx context.Context, chunks []string) ([]bool, error) {
	held := map[string]bool{}
	err := v.ask(ctx, chunks, func(ctx context.Context, ids []*pb.PointId) error {
		r, err := v.client.grpc.Points().Get(ctx, &pb.GetPoints{CollectionName: v.name, Ids: ids, WithPayload: pb.NewWithPayloadInclude("chunk")})
		for _, p := range r.GetResult() {
			held[p.Payload["chunk"].GetStringValue()] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking up chunks in %s: %w", v.name, err)
	}
	has := make([]bool, len(chunks))
	for i, chunk := range chunks {
		has[i] = held[chunk]
	}
	return has, nil
}

// ask runs a question about chunks in pieces, each id once.
func (v *Vectors) ask(ctx context.Context, chunks []string, question func(context.Context, []*pb.PointId) error) error {
	if err := ctx.Err(); err != nil || len(chunks) == 0 {
		return err
	}
	if err := v.start(ctx); err != nil {
		return err
	}
	names := slices.Clone(chunks)
	slices.Sort(names)
	defer v.gate.read()()
	for piece := range slices.Chunk(slices.Compact(names), askIDs) {
		ids := pointIDs(piece)
		if err := v.client.read(ctx, func(ctx context.Context) error { return question(ctx, ids) }); err != nil {
			return err
		}
	}
	return nil
}

// Count implements store.Vectors.
func (v *Vectors) Count() (int, error) {
	ctx := context.Background()
	if err := v.start(ctx); err != nil {
		return 0, fmt.Errorf("counting %s: %w", v.name, err)
	}
	return v.client.count(ctx, v.name)
}

func (c *Client) count(ctx context.Context, collection string) (n int, err error) {
	err = c.read(ctx, func(ctx context.Context) error {
		r, err := c.grpc.Points().Count(ctx, &pb.CountPoints{CollectionName: collection, Exact: pb.PtrOf(true)})
		n = int(r.GetResult().GetCount())
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("counting %s: %w", collection, err)
	}
	return n, nil
}

// Close implements store.Vectors. The client stays open.
func (v *Vectors) Close() error { return nil }

// Vectors returns the vector of each chunk, nil for a chunk that has none.
func (v *Vectors) Vectors(ctx context.Context, chunks []string) ([][]float32, error) {
	known := map[string][]float32{}
	err := v.ask(ctx, chunks, func(ctx context.Context, ids []*pb.PointId) error {
		r, err := v.client.grpc.Points().Get(ctx, &pb.GetPoints{CollectionName: v.name, Ids: ids, WithPayload: pb.NewWithPayloadInclude("chunk"), WithVectors: pb.NewWithVectors(true)})
		for _, p := range r.GetResult() {
			out := p.GetVectors().GetVector()
			data := out.GetDense().GetData()
			if data == nil {
				//lint:ignore SA1019 servers before 1.16 put it there
				data = out.GetData()
			}
			known[p.Payload["chunk"].GetStringValue()] = data
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading vectors of %s: %w", v.name, err)
	}
	vectors := make([][]float32, len(chunks))
	for i, chunk := range chunks {
		vectors[i] = known[chunk]
	}
	return vectors, nil
}
