//go:build !linux && !openbsd && !dragonfly && !solaris && !darwin && !freebsd && !netbsd

package walk

import "io/fs"

// ChangeTime is 0: this system does not tell.
func ChangeTime(fs.FileInfo) int64 { return 0 }

// Inode returns zeros: this system does not tell.
func Inode(fs.FileInfo) (number, names uint64) { return 0, 0 }
