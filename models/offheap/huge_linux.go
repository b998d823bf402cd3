package offheap

import "syscall"

// adviseHuge requests huge pages, which are faster to allocate and to read.
func adviseHuge(b []byte) { _ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) }
