package flat

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// mapping is a file that is mapped for reading. A search reads hundreds of vectors at
// random offsets, and a system call takes ten times as long as a copy from a mapping.
type mapping struct{ bytes []byte }

// maxMapped is the size of the largest file that is mapped. The pages of a larger file
// would count as memory of the process, and its searches spend most of their time
// scanning.
const maxMapped = 256 << 20

// mapFile maps the first size bytes of f and room for as many more, which must not be
// read before they are written. It returns nil for a large file, and on systems where
// files are not mapped. The mapping is released with its last reference.
func mapFile(f *os.File, size int64) *mapping {
	const least = 64 << 20
	if size > maxMapped {
		return nil
	}
	b, err := mmap(f, max(least, 2*size))
	if err != nil {
		return nil
	}
	m := &mapping{b}
	runtime.AddCleanup(m, munmap, b)
	return m
}

// copy copies bytes from offset at to b. The caller recovers faults.
func (m *mapping) copy(b []byte, at int64) {
	copy(b, m.bytes[at:])
	runtime.KeepAlive(m)
}

// recoverFault sets err if reading mapped memory failed, because the file was truncated or
// its disk fails. Deferred as
//
//	defer recoverFault(debug.SetPanicOnFault(true), &err)
//
// it covers the goroutine of its caller.
func recoverFault(before bool, err *error) {
	debug.SetPanicOnFault(before)
	switch fault := recover().(type) {
	case nil:
	case interface {
		error
		Addr() uintptr
	}:
		*err = fmt.Errorf("reading vectors: %w", fault)
	default:
		panic(fault)
	}
}

// covers reports whether all bytes up to offset end are mapped.
func (m *mapping) covers(end int64) bool { return m != nil && end <= int64(len(m.bytes)) }
