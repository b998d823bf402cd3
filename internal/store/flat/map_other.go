//go:build !linux && !darwin

package flat

import (
	"errors"
	"os"
)

// mmap fails, because Windows cannot replace a mapped file.
func mmap(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func munmap([]byte) {}
