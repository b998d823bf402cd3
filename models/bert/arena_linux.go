package bert

import "golang.org/x/sys/unix"

// adviseHuge requests huge pages. They only affect speed.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
