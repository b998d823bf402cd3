//go:build linux || openbsd || dragonfly || solaris

package walk

import (
	"io/fs"
	"syscall"
)

// ChangeTime is when the file's content or attributes last changed, in Unix
// nanoseconds, as the system keeps it: unlike the time of modification nobody
// can set it. 0 where it is not known.
func ChangeTime(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}

// Linked reports whether the file has another name, through which it can change
// without an event for this one.
func Linked(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && !info.IsDir() && st.Nlink > 1
}
