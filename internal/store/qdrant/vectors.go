package qdrant

import (
	"context"
	"math"
	"slices"

	pb "github.com/qdrant/go-client/qdrant"

	"cairn/internal/store"
)

// Vectors is a collection of chunks as a store.VectorSearcher.
type Vectors struct{ *Chunks }

var _ store.VectorSearcher = Vectors{}

// Search implements store.VectorSearcher.
func (v Vectors) Search(ctx context.Context, query []float32, k int, f store.Filter) ([]store.Hit, error) {
	hits, err := v.SearchLegs(ctx, store.LegsQuery{Vector: query, Nearest: k, Filter: f})
	return hits.Nearest, err
}

// Scores implements store.VectorSearcher, with the original vectors.
func (v Vectors) Scores(ctx context.Context, query []float32, chunks []string) (_ []float64, err error) {
	defer wrap(&err, "scoring in %s", v.name)
	if err := v.checkVector(query); err != nil {
		return nil, err
	}
	known := map[string]float64{}
	err = v.each(ctx, chunks, func(of map[string]string, ids []*pb.PointId) error {
		found, err := v.client.query(ctx, &pb.QueryPoints{
			CollectionName: v.name, Using: pb.PtrOf(denseVector), Query: pb.NewQueryDense(query), Limit: pb.PtrOf(uint64(len(ids))), Params: exact(),
			Filter: &pb.Filter{Must: []*pb.Condition{pb.NewHasID(ids...)}},
		})
		if err == nil {
			for _, p := range found[0] {
				known[of[p.Id.GetUuid()]] = float64(p.Score)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
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

// Vectors returns the vector of each chunk, or nil for a chunk without one.
func (v Vectors) Vectors(ctx context.Context, chunks []string) (_ [][]float32, err error) {
	defer wrap(&err, "reading vectors of %s", v.name)
	known := map[string][]float32{}
	err = v.each(ctx, chunks, func(of map[string]string, ids []*pb.PointId) error {
		points, err := v.client.points(ctx, &pb.GetPoints{
			CollectionName: v.name, Ids: ids, WithVectors: pb.NewWithVectorsInclude(denseVector),
		})
		for _, p := range points {
			known[of[p.Id.GetUuid()]] = p.GetVectors().GetVectors().GetVectors()[denseVector].GetDenseVector().GetData()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(chunks))
	for i, chunk := range chunks {
		vectors[i] = known[chunk]
	}
	return vectors, nil
}

// each calls fn with the ids of the points of chunks, in batches without repetitions, and
// with the chunk of each id.
func (c *Chunks) each(ctx context.Context, chunks []string, fn func(of map[string]string, ids []*pb.PointId) error) error {
	if err := ctx.Err(); err != nil || len(chunks) == 0 {
		return err
	}
	if err := c.Open(ctx); err != nil {
		return err
	}
	names := slices.Clone(chunks)
	slices.Sort(names)
	for piece := range slices.Chunk(slices.Compact(names), idsPerCall) {
		ids, of := pointIDs(piece), make(map[string]string, len(piece))
		for i, id := range ids {
			of[id.GetUuid()] = piece[i]
		}
		if err := fn(of, ids); err != nil {
			return err
		}
	}
	return nil
}

// Count returns the number of vectors.
func (v Vectors) Count() (int, error) {
	return v.countPoints(&pb.Filter{Must: []*pb.Condition{pb.NewHasVector(denseVector)}})
}
