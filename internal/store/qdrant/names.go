package qdrant

import (
	"context"
	"slices"

	"github.com/google/uuid"
	pb "github.com/qdrant/go-client/qdrant"

	"cairn/internal/store"
)

// maxNames is how many names Chunks.names holds, about 200 bytes each.
const maxNames = 1 << 17

// nameAll reads the chunks of as many points as names has room for, in the background. It
// begins with the second search, since a command that searches once does not need them.
// After an error, searches look up what they need.
func (c *Chunks) nameAll() {
	if c.searches.Add(1) != 2 {
		return
	}
	c.client.tasks.Go(func() {
		_ = c.scroll(c.client.open, nil, []string{"chunk"}, func(p *pb.RetrievedPoint) bool {
			c.names.Add(keyOf(p.Id), chunkIn(p.Payload))
			return c.names.Len() < maxNames
		})
	})
}

// keyOf returns the key of a point in Chunks.names.
func keyOf(id *pb.PointId) uuid.UUID {
	key, _ := uuid.Parse(id.GetUuid()) // the engine returns the ids that it was given
	return key
}

// scoredChunk is a point that a search found. Its payload is nil unless the search
// requested it.
type scoredChunk struct {
	store.Hit
	payload map[string]*pb.Value
}

// named returns the chunks of the points in lists, with one call for those that are not
// known. It drops the points that were deleted meanwhile.
func (c *Chunks) named(ctx context.Context, lists [][]*pb.ScoredPoint) ([][]scoredChunk, error) {
	out := make([][]scoredChunk, len(lists))
	var unknown []*pb.PointId
	for n, list := range lists {
		out[n] = make([]scoredChunk, len(list))
		for i, p := range list {
			chunk := chunkIn(p.Payload)
			if chunk == "" {
				chunk, _ = c.names.Get(keyOf(p.Id))
			}
			if chunk == "" {
				unknown = append(unknown, p.Id)
			}
			out[n][i] = scoredChunk{store.Hit{Chunk: chunk, Score: float64(p.Score)}, p.Payload}
		}
	}
	if len(unknown) == 0 {
		return out, nil
	}
	read, err := c.readNames(ctx, unknown)
	if err != nil {
		return nil, err
	}
	for n, list := range lists {
		for i, p := range list {
			if out[n][i].Chunk == "" {
				out[n][i].Chunk = read[keyOf(p.Id)]
			}
		}
		out[n] = slices.DeleteFunc(out[n], func(s scoredChunk) bool { return s.Chunk == "" })
	}
	return out, nil
}

// readNames reads the chunks of points and remembers them. A point may occur twice in ids.
func (c *Chunks) readNames(ctx context.Context, ids []*pb.PointId) (map[uuid.UUID]string, error) {
	read := make(map[uuid.UUID]string, len(ids))
	for some := range slices.Chunk(ids, idsPerCall) {
		points, err := c.get(ctx, some, "chunk")
		if err != nil {
			return nil, err
		}
		for _, p := range points {
			key, chunk := keyOf(p.Id), chunkIn(p.Payload)
			read[key] = chunk
			c.names.Add(key, chunk)
		}
	}
	return read, nil
}

func chunkIn(p map[string]*pb.Value) string { return p["chunk"].GetStringValue() }
