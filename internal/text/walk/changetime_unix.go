//go:build linux || openbsd || dragonfly || solaris || darwin || freebsd || netbsd

package walk

import (
	"io/fs"
	"syscall"
)

// ChangeTime returns the time of the last change of the file's content or attributes in
// Unix nanoseconds, 0 if it is unknown. Unlike the time of modification, programs cannot
// set it.
func ChangeTime(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return changed(st)
	}
	return 0
}

// Inode returns the number of the file in its file system, 0 if it is unknown.
func Inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}
