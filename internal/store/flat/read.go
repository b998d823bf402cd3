package flat

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"

	"cairn/internal/base/checksum"
)

// vectorReader reads the vectors of a snapshot.
type vectorReader struct {
	snap      *snapshot
	code, low []byte // buffers
}

// slot returns the code, the low bytes and the scale of a slot. They are valid until the
// next call.
func (r *vectorReader) slot(slot int) (code, low []byte, scale float32, err error) {
	b, i := r.snap.blocks[slot/blockLen], slot%blockLen
	if r.low == nil {
		r.code, r.low = make([]byte, r.snap.dim), make([]byte, r.snap.dim)
	}
	code, low = r.code, r.low
	if err := r.snap.code(code, slot); err != nil {
		return nil, nil, 0, err
	}
	if b.low != nil {
		low = b.low[i*r.snap.dim:][:r.snap.dim]
	} else if err := r.snap.readLow(low, b.vector[i]); err != nil {
		return nil, nil, 0, err
	}
	return code, low, b.scale[i], nil
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

// readLow reads the low bytes of vector n of the file.
func (s *snapshot) readLow(low []byte, n uint32) error {
	_, at := s.vectors.extent(n).offsets(n, s.dim)
	return s.log.readChecked(low, at, s.vectors.at(n).sum)
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
	readers := make([]vectorReader, threads)
	err := share(threads, (len(slots)+readBatch-1)/readBatch, func(worker, batch int) error {
		readers[worker].snap = s
		for i := batch * readBatch; i < min((batch+1)*readBatch, len(slots)); i++ {
			if slots[i] < 0 {
				scores[i] = math.NaN()
				continue
			}
			code, low, scale, err := readers[worker].slot(slots[i])
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
	return vectors, ctx.Err()
}
