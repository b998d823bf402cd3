//go:build !linux && !openbsd && !dragonfly && !solaris && !darwin && !freebsd && !netbsd

package walk

import "io/fs"

// ChangeTime returns 0: it is unknown on this system.
func ChangeTime(fs.FileInfo) int64 { return 0 }

// Inode returns zeros: they are unknown on this system.
func Inode(fs.FileInfo) (number, names uint64) { return 0, 0 }
