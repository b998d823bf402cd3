package home

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// identity returns the number and the time of birth of a folder. A move keeps them, and no
// later folder has both. It returns "" if the file system does not keep them.
func identity(root string) string {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, root, 0, unix.STATX_INO|unix.STATX_BTIME, &st) != nil || st.Btime.Sec == 0 {
		return ""
	}
	return fmt.Sprint(st.Ino, " ", st.Btime.Sec, " ", st.Btime.Nsec)
}
