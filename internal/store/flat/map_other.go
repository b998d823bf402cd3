//go:build !linux && !darwin

package flat

import (
	"errors"
	"io"
	"os"
)

// mmap fails, because Windows cannot replace a mapped file.
func mmap(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

// mapPrivate reads a file of size bytes.
func mapPrivate(f *os.File, size int) ([]byte, error) {
	b := make([]byte, size)
	_, err := io.ReadFull(f, b)
	return b, err
}

func munmap([]byte) {}
