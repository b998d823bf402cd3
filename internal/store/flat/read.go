package flat

import (
	"context"
	"slices"
)

// Vectors returns the vector of each chunk, nil for a chunk that has none. They
// are the caller's.
func (s *Store) Vectors(ctx context.Context, chunks []string) ([][]float32, error) {
	snap, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(chunks))
	read := snap.reader()
	for i, id := range chunks {
		slot, ok := snap.lookup(id)
		if !ok {
			continue
		}
		v, err := read.vector(slot)
		if err != nil {
			return nil, err
		}
		vectors[i] = slices.Clone(v)
	}
	return vectors, ctx.Err()
}
