package minilm

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// release gives back the memory of the whole pages within an embedded file, which were
// read once. The next access reads them again from the binary.
func release(file []byte) {
	page := uintptr(os.Getpagesize())
	start := uintptr(unsafe.Pointer(unsafe.SliceData(file)))
	from := (start+page-1)&^(page-1) - start
	to := (start+uintptr(len(file)))&^(page-1) - start
	if from < to && mapsFile(start+from, start+to) {
		_ = syscall.Madvise(file[from:to], syscall.MADV_DONTNEED) // affects only memory
	}
}

// mapsFile reports whether addresses are within one mapping of a file. A packed program
// is unpacked into other memory, whose content would be lost.
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
