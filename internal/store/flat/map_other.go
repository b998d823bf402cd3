//go:build !linux && !darwin

package flat

import (
	"errors"
	"os"
)

// mmap fails, because Windows cannot replace a mapped file.
func mmap(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func munmap([]byte) {}

func allocate(n int) []byte { return make([]byte, n) }

func free([]byte) {}
