//go:build !linux && !openbsd && !dragonfly && !solaris && !darwin && !freebsd && !netbsd

package walk

import "io/fs"

// ChangeTime is 0: this system does not tell.
func ChangeTime(fs.FileInfo) int64 { return 0 }

// Linked is false: this system does not tell.
func Linked(fs.FileInfo) bool { return false }
