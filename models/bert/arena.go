package bert

import (
	"unsafe"

	"cairn/models/offheap"
)

// An arena allocates the memory of packed weights from a few large pieces, in huge pages
// if the operating system supports them. Each forward pass reads all the weights, which
// takes most of the time of a short query. With pages of 4 KiB it takes a fifth to a
// quarter longer.
//
// The memory is outside of Go's heap.
type arena struct {
	free   []byte
	pieces [][]byte
}

const arenaPiece = 3 * offheap.HugePage

// bytes returns n zero bytes that start at a cache line.
func (a *arena) bytes(n int) []byte {
	size := roundUp(n, 64)
	if size > len(a.free) {
		piece := offheap.Allocate(roundUp(size, arenaPiece) + offheap.HugePage)
		a.pieces = append(a.pieces, piece)
		skip := int(-uintptr(unsafe.Pointer(&piece[0])) & (offheap.HugePage - 1))
		a.free = piece[skip : len(piece)-offheap.HugePage+skip]
	}
	out := a.free[:n:n]
	a.free = a.free[size:]
	return out
}

// release frees the memory.
func (a *arena) release() {
	for _, piece := range a.pieces {
		offheap.Free(piece)
	}
}

func (a *arena) codes(n int) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(a.bytes(n)))), n)
}

func (a *arena) floats(n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(a.bytes(4*n)))), n)
}
