package flat

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// mapping is a file in memory, for reading. A search reads hundreds of vectors from
// anywhere in the file, and a call of the system takes ten times as long as copying one.
type mapping struct{ bytes []byte }

// maxMapped is the size of a file that is not mapped any more: of a large one hundreds of
// searches would count as memory of the process, and there scanning takes most of the time.
const maxMapped = 256 << 20

// mapFile maps the first size bytes of a file and as many to come, which cannot be
// read before they are written. It returns nil for a large file and where files are not
// mapped; then they are read. The mapping ends when nothing refers to it any more.
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

// copy copies the bytes from offset at on into b. It returns an error if the file has
// been cut short, or its disk fails.
func (m *mapping) copy(b []byte, at int64) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%v", fault)
		}
	}()
	copy(b, m.bytes[at:])
	runtime.KeepAlive(m)
	return nil
}

// covers reports whether all bytes up to offset end are mapped.
func (m *mapping) covers(end int64) bool { return m != nil && end <= int64(len(m.bytes)) }
