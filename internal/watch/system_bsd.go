//go:build darwin || freebsd

package watch

import "golang.org/x/sys/unix"

// maxFolders is how many folders are watched at most. kqueue needs an open file
// for each folder and for each file in it.
const maxFolders = 256

// remote names the type of the file system that holds dir if it is another
// machine's. "" is any other.
func remote(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil || s.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return "a network"
}
