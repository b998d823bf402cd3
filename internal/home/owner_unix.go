//go:build unix

package home

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the user a file belongs to; -1 when unknown.
func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
