//go:build unix

package kv

import (
	"os"
	"syscall"
)

// unlock releases the lock of bbolt on f.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
