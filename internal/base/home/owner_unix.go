//go:build unix

package home

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the ID of the user who owns a file, -1 if it is unknown.
func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
