package flat

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"cairn/internal/checksum"
	"cairn/internal/offheap"
)

// A large store keeps only the sketches of full blocks in memory, and reads the few codes
// that a search needs from the file. Such a block is sealed. The sketches are also in a file
// of their own, so that Open reads neither codes nor makes sketches. That file is a cache:
// a block whose sketch it lacks, or has damaged, is sealed again.
//
// The file has one record for each full block, in native byte order:
//
//	magic       uint32
//	checksum    uint32, CRC-32C of all that follows
//	fingerprint uint64, of the codes of the block
//	sketch      sketchSize bytes

const (
	// sealedFrom is the number of vectors from which a store seals its blocks.
	sealedFrom = 64 * blockLen

	sketchFileName = "sketches.cairn"
	sketchMagic    = 0x316b7363 // "csk1"
	sketchHeader   = 16
)

// sealed returns the blocks of s that are sealed, or have to be.
func (s *Store) sealed(snap *snapshot) []*block {
	if snap.log == nil || snap.n < s.options.sealedFrom {
		return nil
	}
	return snap.full()
}

// seal makes and writes the sketches of the blocks that are to be sealed, and drops their
// codes. The caller holds s.mu, or is load.
func (s *Store) seal(snap *snapshot) {
	var open []int
	for i, b := range s.sealed(snap) {
		if b.rows.Load() != nil {
			open = append(open, i)
		}
	}
	if len(open) == 0 {
		return
	}
	file, err := s.openSketches()
	if err != nil {
		s.options.Logger.Warn("the sketches of vectors cannot be stored, so that the next start takes longer", "error", err)
	}
	if file != nil {
		defer file.Close()
	}
	share(runtime.GOMAXPROCS(0), len(open), func(_, i int) { s.sealBlock(snap, open[i], file) })
}

// sealBlock seals a block that has codes. file may be nil.
func (s *Store) sealBlock(snap *snapshot, i int, file *os.File) {
	b := snap.blocks[i]
	rows := b.rows.Load()
	sketch := b.sketch.Load()
	if sketch == nil {
		sketch = newSketch(b, rows.codes, snap.dim, snap.stride, s.kernel)
		b.sketch.Store(sketch)
	}
	runtime.KeepAlive(rows)
	if file != nil {
		writeSketch(file, i, snap.fingerprint(b), sketch) // an error leaves a record that is not valid
	}
	b.rows.Store(nil)
}

// openSketches opens the file of sketches for writing. It returns nil in a store that is
// read-only.
func (s *Store) openSketches() (*os.File, error) {
	if s.options.ReadOnly {
		return nil, nil
	}
	return os.OpenFile(s.sketchPath(), os.O_RDWR|os.O_CREATE, 0o644)
}

func (s *Store) sketchPath() string { return filepath.Join(filepath.Dir(s.path), sketchFileName) }

// fingerprint identifies the codes and scales of a block.
func (s *snapshot) fingerprint(b *block) uint64 {
	var values [2][4 * blockLen]byte
	for i, n := range b.vector {
		v := &s.vectors.all[n]
		binary.LittleEndian.PutUint32(values[0][4*i:], v.codeSum)
		binary.LittleEndian.PutUint32(values[1][4*i:], v.sum)
	}
	return uint64(checksum.Of(values[0][:]))<<32 | uint64(checksum.Of(values[1][:]))
}

func writeSketch(file *os.File, i int, fingerprint uint64, s *sketch) {
	b := make([]byte, sketchHeader, sketchHeader+len(s.memory))
	binary.NativeEndian.PutUint32(b, sketchMagic)
	binary.NativeEndian.PutUint64(b[8:], fingerprint)
	b = append(b, s.memory...)
	binary.NativeEndian.PutUint32(b[4:], checksum.Of(b[8:]))
	_, _ = file.WriteAt(b, int64(i)*int64(len(b)))
}

// storedSketch is a sketch of the file. sketch is nil if it is damaged.
type storedSketch struct {
	fingerprint uint64
	sketch      *sketch
}

// readSketches reads the file of sketches of a store of at most n vectors. It returns nil if
// the store is not sealed, or has no such file.
func (s *Store) readSketches(n int) []storedSketch {
	if n < s.options.sealedFrom {
		return nil
	}
	file, err := os.Open(s.sketchPath())
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	stride := strideOf(s.dim)
	size := int64(sketchHeader + sketchSize(stride))
	sketches := make([]storedSketch, min(info.Size()/size, int64(n/blockLen)))
	share(runtime.GOMAXPROCS(0), len(sketches), func(_, i int) { sketches[i] = readSketch(file, int64(i)*size, stride) })
	return sketches
}

func readSketch(file *os.File, at int64, stride int) (r storedSketch) {
	var header [sketchHeader]byte
	if _, err := file.ReadAt(header[:], at); err != nil || binary.NativeEndian.Uint32(header[:]) != sketchMagic {
		return r
	}
	s := allocateSketch(stride)
	if _, err := file.ReadAt(s.memory, at+sketchHeader); err == nil &&
		binary.NativeEndian.Uint32(header[4:]) == checksum.Add(checksum.Of(header[8:]), s.memory) {
		r = storedSketch{binary.NativeEndian.Uint64(header[8:]), s}
	}
	return r
}

// sketchSize returns the size of the memory of a sketch.
func sketchSize(stride int) int {
	return blockLen*(stride/8+coarseSize(stride)) + 4*4*blockLen + stride + strideUnit
}

// allocateSketch returns a sketch whose memory is zero.
func allocateSketch(stride int) *sketch {
	memory := offheap.Allocate(sketchSize(stride))
	rest := memory
	take := func(n int) []byte {
		b := rest[:n:n]
		rest = rest[n:]
		return b
	}
	floats := func() *[blockLen]float32 { return (*[blockLen]float32)(unsafe.Pointer(&take(4 * blockLen)[0])) }
	s := &sketch{memory: memory, signs: take(blockLen * stride / 8), coarse: take(blockLen * coarseSize(stride))}
	s.bySign, s.byCoarse = estimator{floats(), floats()}, estimator{floats(), floats()}
	s.centre = take(stride)
	s.scale = (*float32)(unsafe.Pointer(&rest[0]))
	runtime.AddCleanup(s, offheap.Free, memory)
	return s
}
