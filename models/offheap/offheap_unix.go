//go:build linux || darwin

package offheap

import (
	"fmt"
	"syscall"
)

// Allocate returns n zero bytes that begin at a page. n must be positive. Allocate panics if
// the system has no memory.
func Allocate(n int) []byte {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		panic(fmt.Sprintf("allocating %d bytes: %v", n, err))
	}
	if n >= 2*HugePage { // it has at least one that is aligned
		adviseHuge(b)
	}
	return b
}

// Free releases what Allocate returned.
func Free(b []byte) { _ = syscall.Munmap(b) }
