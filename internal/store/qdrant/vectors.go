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
	return lookup(ctx, v.Chunks, chunks, math.NaN(), func(ids []*pb.PointId, set func(*pb.PointId, float64)) error {
		found, err := v.client.query(ctx, &pb.QueryPoints{
			CollectionName: v.name, Using: pb.PtrOf(denseVector), Query: pb.NewQueryDense(query), Limit: pb.PtrOf(uint64(len(ids))), Params: exact(),
			Filter: &pb.Filter{Must: []*pb.Condition{pb.NewHasID(ids...)}},
		})
		if err == nil {
			for _, p := range found[0] {
				set(p.Id, float64(p.Score))
			}
		}
		return err
	})
}

// Vectors returns the vector of each chunk, or nil for a chunk without one.
func (v Vectors) Vectors(ctx context.Context, chunks []string) (_ [][]float32, err error) {
	defer wrap(&err, "reading vectors of %s", v.name)
	return lookup(ctx, v.Chunks, chunks, nil, func(ids []*pb.PointId, set func(*pb.PointId, []float32)) error {
		points, err := v.client.points(ctx, &pb.GetPoints{
			CollectionName: v.name, Ids: ids, WithVectors: pb.NewWithVectorsInclude(denseVector),
		})
		for _, p := range points {
			set(p.Id, p.GetVectors().GetVectors().GetVectors()[denseVector].GetDenseVector().GetData())
		}
		return err
	})
}

// lookup returns a value for each chunk, none for a chunk without one. ask sets the values of
// points that exist. lookup calls it with the ids of the points in batches, each once.
func lookup[T any](ctx context.Context, c *Chunks, chunks []string, none T, ask func(ids []*pb.PointId, set func(*pb.PointId, T)) error) ([]T, error) {
	values := make([]T, len(chunks))
	if err := ctx.Err(); err != nil || len(chunks) == 0 {
		return values, err
	}
	if err := c.Open(ctx); err != nil {
		return nil, err
	}
	found := make(map[string]T, len(chunks)) // by id
	for piece := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(chunks))), idsPerCall) {
		if err := ask(pointIDs(piece), func(id *pb.PointId, value T) { found[id.GetUuid()] = value }); err != nil {
			return nil, err
		}
	}
	for i, chunk := range chunks {
		value, ok := found[pointID(chunk).GetUuid()]
		if values[i] = value; !ok {
			values[i] = none
		}
	}
	return values, nil
}

// Count returns the number of vectors.
func (v Vectors) Count() (int, error) {
	return v.countPoints(&pb.Filter{Must: []*pb.Condition{pb.NewHasVector(denseVector)}})
}
