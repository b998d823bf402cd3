//go:build darwin || freebsd || netbsd

package walk

import (
	"io/fs"
	"syscall"
)

// ChangeTime is when the file's content or attributes last changed, in Unix
// nanoseconds, as the system keeps it: unlike the time of modification, no program
// can set it. 0 where it is not known.
func ChangeTime(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctimespec.Nano()
	}
	return 0
}

// Inode returns the number of the file on its file system and how many names it
// has; zeros where they are not known.
func Inode(info fs.FileInfo) (number, names uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino), uint64(st.Nlink)
	}
	return 0, 0
}
