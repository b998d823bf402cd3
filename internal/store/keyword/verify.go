package keyword

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"cairn/internal/base/health"
	"cairn/internal/store/kv"
)

// checkedSegments compares the checksum of a segment's file before its first use. The file
// never changes. It ends with the CRC-32 (IEEE) of the preceding bytes (4 bytes,
// big-endian), which scorch writes but does not compare.
type checkedSegments struct {
	mu   sync.Mutex
	file map[string]bool // checked files of the current segments, by path
}

// check fails with ErrCorrupt if a segment of snap is damaged. Segments in memory have no
// file.
func (c *checkedSegments) check(snap *scorch.IndexSnapshot) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	files := filesOf(snap)
	if slices.ContainsFunc(files, func(path string) bool { return !c.file[path] }) {
		next := make(map[string]bool, len(files))
		for _, path := range files {
			if !c.file[path] {
				if _, err := checkFile(path); err != nil {
					return err
				}
			}
			next[path] = true
		}
		c.file = next
	}
	return nil
}

// checkRoot checks the file in which scorch lists the segments. Scorch reads it in
// goroutines of its own, where a damaged page would end the process.
func checkRoot(dir string) error {
	if dir == "" {
		return nil
	}
	err := kv.CheckPages(filepath.Join(dir, rootFile))
	if _, damaged := errors.AsType[*kv.CorruptError](err); damaged {
		return fmt.Errorf("%w: %v", ErrCorrupt, err)
	}
	return nil // scorch reports other errors
}

// checkSegments checks the current segments. The caller must hold x.open.
func (x *Index) checkSegments() error {
	snap, err := x.snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	return x.checked.check(snap)
}

func filesOf(snap *scorch.IndexSnapshot) []string {
	var files []string
	for _, s := range snap.Segments() {
		if s, ok := s.Segment().(segment.PersistedSegment); ok {
			files = append(files, s.Path())
		}
	}
	return files
}

// checkFile compares the checksum of a segment's file and returns its size. It accepts a
// missing file, which was removed after the snapshot was made.
func checkFile(path string) (size int64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	sum := crc32.NewIEEE()
	last := make([]byte, crc32.Size)
	if size = info.Size(); size < crc32.Size {
		return size, fmt.Errorf("%w: %s is truncated", ErrCorrupt, filepath.Base(path))
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{sum}, io.LimitReader(f, size-crc32.Size), make([]byte, 256<<10)); err != nil {
		return size, err
	}
	if _, err := io.ReadFull(f, last); err != nil {
		return size, err
	}
	if binary.BigEndian.Uint32(last) != sum.Sum32() {
		return size, fmt.Errorf("%w: %s has a wrong checksum", ErrCorrupt, filepath.Base(path))
	}
	return size, nil
}

// Verify reads all current segments and compares their checksums.
func (x *Index) Verify(ctx context.Context) (found health.File, err error) {
	found.Name = filepath.Base(x.dir)
	x.open.RLock()
	defer x.open.RUnlock()
	snap, err := x.snapshot()
	if err != nil {
		return found, err
	}
	defer snap.Close()
	for _, path := range filesOf(snap) {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		size, err := checkFile(path)
		if err != nil {
			found.Problems = append(found.Problems, err.Error())
		}
		found.Bytes += size
		found.Records++
	}
	return found, nil
}
