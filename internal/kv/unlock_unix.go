//go:build unix

package kv

import (
	"os"
	"syscall"
)

// unlock gives back the lock that bbolt took on f.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
