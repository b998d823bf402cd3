//go:build darwin || freebsd

package watch

import "golang.org/x/sys/unix"

// maxFolders bounds the number of watched folders. kqueue needs an open file for each
// folder and for each file in it.
const maxFolders = 256

// remote returns the type of the file system of dir if it is another machine's, "" for
// others.
func remote(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil || s.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return "a network"
}
