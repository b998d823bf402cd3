//go:build unix

package watch

import (
	"errors"
	"syscall"
)

// exhausted reports whether the system has no more watches for this process, or none at
// all.
func exhausted(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOSYS)
}

func notFolder(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
