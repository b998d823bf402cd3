//go:build linux || darwin

package flat

import (
	"os"
	"syscall"
)

func mmap(f *os.File, size int64) ([]byte, error) {
	if int64(int(size)) != size {
		return nil, syscall.ENOMEM
	}
	return syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
}

// mapPrivate maps a file of size bytes. Writes to the memory do not change the file.
func mapPrivate(f *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE)
}

func munmap(b []byte) { _ = syscall.Munmap(b) }
