package flat

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"cairn/internal/checksum"
)

// vectorReader reads the vectors of a snapshot.
type vectorReader struct {
	snap   *snapshot
	buffer []byte
}

// slot returns the code, the low bytes and the scale of a slot. They are valid until the
// next call.
func (r *vectorReader) slot(slot int) (code, low []byte, scale float32, err error) {
	b, i := r.snap.blocks[slot/blockLen], slot%blockLen
	code, scale = b.codes[i*r.snap.stride:][:r.snap.dim], b.scale[i]
	if b.low != nil {
		return code, b.low[i*r.snap.dim:][:r.snap.dim], scale, nil
	}
	if r.buffer == nil {
		r.buffer = make([]byte, r.snap.dim)
	}
	n, vectors := b.vector[i], &r.snap.vectors
	_, at := vectors.extent(n).offsets(n, r.snap.dim)
	if err := r.snap.log.read(r.buffer, at); err != nil {
		return nil, nil, 0, err
	}
	if checksum.Of(r.buffer) != vectors.all[n].sum {
		return nil, nil, 0, &CorruptError{Path: r.snap.log.file.Name(), Reason: fmt.Sprintf("the vector at %d is damaged", at)}
	}
	return code, r.buffer, scale, nil
}

// exact returns the cosines of slots with 16 bits a coordinate, and NaN for slot -1.
func (s *snapshot) exact(k kernel, queryVector []float32, slots []int, threads int) ([]float64, error) {
	query := newFineQuery(queryVector)
	scores := make([]float64, len(slots))
	errs := make([]error, threads)
	readers := make([]vectorReader, threads)
	share(threads, (len(slots)+readBatch-1)/readBatch, func(worker, batch int) {
		readers[worker].snap = s
		for i := batch * readBatch; i < min((batch+1)*readBatch, len(slots)) && errs[worker] == nil; i++ {
			if slots[i] < 0 {
				scores[i] = math.NaN()
				continue
			}
			code, low, scale, err := readers[worker].slot(slots[i])
			if err != nil {
				errs[worker] = err
				return
			}
			scores[i] = query.cosine(k, code, low, scale)
		}
	})
	runtime.KeepAlive(s) // and its codes, which are outside of Go's heap
	return scores, errors.Join(errs...)
}

// Vectors returns the vector of each chunk, and nil for a chunk without one. The caller
// may modify them.
func (s *Store) Vectors(ctx context.Context, chunks []string) ([][]float32, error) {
	snap, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(chunks))
	read := vectorReader{snap: snap}
	for i, id := range chunks {
		slot, ok := snap.lookup(id)
		if !ok {
			continue
		}
		code, low, scale, err := read.slot(slot)
		if err != nil {
			return nil, err
		}
		vectors[i] = restore(code, low, scale)
	}
	runtime.KeepAlive(snap)
	return vectors, ctx.Err()
}
