//go:build !unix

package kv

import "os"

// unlock does nothing: closing f releases its lock. A file with Options.Owned stays locked
// while it is open.
func unlock(*os.File) {}
