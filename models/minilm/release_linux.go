package minilm

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// release releases the memory of the pages of an embedded file. The next access reads
// them again from the binary.
func release(file []byte) {
	page := uintptr(os.Getpagesize())
	start := uintptr(unsafe.Pointer(unsafe.SliceData(file)))
	from := (start+page-1)&^(page-1) - start
	to := (start+uintptr(len(file)))&^(page-1) - start
	if from < to && mapsFile(start+from, start+to) {
		_ = syscall.Madvise(file[from:to], syscall.MADV_DONTNEED) // affects only memory
	}
}

// mapsFile reports whether a range of addresses is within one mapping of a file. A packed
// executable is unpacked into other memory, whose content would be lost.
func mapsFile(from, to uintptr) bool {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return false
	}
	for line := range bytes.Lines(maps) {
		var start, end uintptr
		var access, offset, device string
		var inode uint64
		n, _ := fmt.Sscanf(string(line), "%x-%x %s %s %s %d", &start, &end, &access, &offset, &device, &inode)
		if n == 6 && start <= from && to <= end {
			return inode != 0
		}
	}
	return false
}
