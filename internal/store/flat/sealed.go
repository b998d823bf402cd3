package flat

import (
	"runtime"
	"unsafe"

	"cairn/models/offheap"
)

// A large store keeps only the sketches of full blocks in memory, and reads the few codes
// that a search needs from the file. Such a block is sealed.

// sealedFrom is the number of vectors from which a store seals its blocks.
const sealedFrom = 64 * blockLen

// sealed returns the blocks of s that are sealed, or have to be.
func (s *Store) sealed(snap *snapshot) []*block {
	if snap.log == nil || snap.n < s.options.sealedFrom {
		return nil
	}
	return snap.full()
}

// seal seals the blocks that are to be sealed. The caller holds s.mu.
func (s *Store) seal(snap *snapshot) {
	blocks := s.sealed(snap)
	_ = share(runtime.GOMAXPROCS(0), len(blocks), func(_, i int) error {
		if blocks[i].rows.Load() != nil {
			s.sealBlock(snap, blocks[i])
		}
		return nil
	})
}

// sealBlock makes the sketch of a block, unless it has one, and drops its codes.
func (s *Store) sealBlock(snap *snapshot, b *block) {
	rows := b.rows.Load()
	if b.sketch.Load() == nil {
		b.sketch.Store(newSketch(b, rows.codes, snap.dim, snap.stride, s.kernel))
	}
	runtime.KeepAlive(rows)
	b.rows.Store(nil)
}

// sketchSize returns the size of the memory of a sketch.
func sketchSize(stride int) int {
	return blockLen*(stride/8+coarseSize(stride)) + 4*4*blockLen + stride + strideUnit
}

// allocateSketch returns a sketch whose memory is zero.
func allocateSketch(stride int) *sketch {
	s := sketchOf(offheap.Allocate(sketchSize(stride)), stride, nil)
	runtime.AddCleanup(s, offheap.Free, s.memory)
	return s
}

func sketchOf(memory []byte, stride int, img *image) *sketch {
	rest := memory
	take := func(n int) []byte {
		b := rest[:n:n]
		rest = rest[n:]
		return b
	}
	floats := func() *[blockLen]float32 { return (*[blockLen]float32)(unsafe.Pointer(&take(4 * blockLen)[0])) }
	s := &sketch{memory: memory, image: img, signs: take(blockLen * stride / 8), coarse: take(blockLen * coarseSize(stride))}
	s.bySign, s.byCoarse = estimator{floats(), floats()}, estimator{floats(), floats()}
	s.centre = take(stride)
	s.scale = (*float32)(unsafe.Pointer(&rest[0]))
	return s
}
