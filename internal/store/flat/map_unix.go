//go:build linux || darwin

package flat

import (
	"fmt"
	"os"
	"syscall"
)

func mmap(f *os.File, size int64) ([]byte, error) {
	if int64(int(size)) != size {
		return nil, syscall.ENOMEM
	}
	return syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
}

func munmap(b []byte) { _ = syscall.Munmap(b) }

// allocate returns n zero bytes outside of Go's heap; free releases them.
func allocate(n int) []byte {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		panic(fmt.Sprintf("allocating %d bytes: %v", n, err)) // as the heap would
	}
	return b
}

func free(b []byte) { munmap(b) }
