//go:build !linux && !openbsd && !dragonfly && !solaris && !darwin && !freebsd && !netbsd

package walk

import "io/fs"

// ChangeTime returns 0: it is unknown on this system.
func ChangeTime(fs.FileInfo) int64 { return 0 }

// Inode returns 0: it is unknown on this system.
func Inode(fs.FileInfo) uint64 { return 0 }
