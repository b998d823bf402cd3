package flat

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"

	"cairn/internal/base/checksum"
)

// vector sets the code and the low bytes of a slot and returns its scale.
func (s *snapshot) vector(code, low []byte, slot int) (scale float32, err error) {
	b, i := s.blocks[slot/blockLen], slot%blockLen
	if err := s.code(code, slot); err != nil {
		return 0, err
	}
	if b.low != nil {
		copy(low, b.low[i*s.dim:])
		return b.scale[i], nil
	}
	n := b.vector[i]
	_, at := s.vectors.extent(n).offsets(n, s.dim)
	return b.scale[i], s.log.readChecked(low, at, s.vectors.at(n).sum)
}

// readCode reads the code of vector n of the file.
func (s *snapshot) readCode(code []byte, n uint32) error {
	at, _ := s.vectors.extent(n).offsets(n, s.dim)
	return s.log.readChecked(code, at, s.vectors.at(n).codeSum)
}

// code copies the code of a slot.
func (s *snapshot) code(to []byte, slot int) error {
	b, i := s.blocks[slot/blockLen], slot%blockLen
	if rows := b.rows.Load(); rows != nil {
		copy(to, rows.codes[i*s.stride:][:s.dim])
		runtime.KeepAlive(rows)
		return nil
	}
	return s.readCode(to, b.vector[i])
}

// readChecked reads half a vector, and returns a *CorruptError if it has another checksum.
func (l *log) readChecked(b []byte, at int64, sum uint32) error {
	if err := l.read(b, at); err != nil {
		return err
	}
	if checksum.Of(b) != sum {
		return &CorruptError{Path: l.file.Name(), Reason: fmt.Sprintf("the vector at %d is damaged", at)}
	}
	return nil
}

// exact returns the cosines of slots with 16 bits a coordinate, and NaN for slot -1.
func (s *snapshot) exact(k kernel, queryVector []float32, slots []int, threads int) ([]float64, error) {
	query := newFineQuery(queryVector)
	scores := make([]float64, len(slots))
	buffers := make([]byte, 2*s.dim*threads)
	err := share(threads, (len(slots)+readBatch-1)/readBatch, func(worker, batch int) error {
		code, low := buffers[2*worker*s.dim:][:s.dim], buffers[(2*worker+1)*s.dim:][:s.dim]
		for i := batch * readBatch; i < min((batch+1)*readBatch, len(slots)); i++ {
			if slots[i] < 0 {
				scores[i] = math.NaN()
				continue
			}
			scale, err := s.vector(code, low, slots[i])
			if err != nil {
				return err
			}
			scores[i] = query.cosine(k, code, low, scale)
		}
		return nil
	})
	return scores, err
}

// Vectors returns the vector of each chunk, and nil for a chunk without one. The caller
// may modify them.
func (s *Store) Vectors(ctx context.Context, chunks []string) (vectors [][]float32, err error) {
	defer recoverFault(debug.SetPanicOnFault(true), &err)
	snap, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	vectors = make([][]float32, len(chunks))
	code, low := make([]byte, snap.dim), make([]byte, snap.dim)
	for i, id := range chunks {
		slot := snap.lookup(id)
		if slot < 0 {
			continue
		}
		scale, err := snap.vector(code, low, slot)
		if err != nil {
			return nil, err
		}
		vectors[i] = restore(code, low, scale)
	}
	return vectors, ctx.Err()
}
