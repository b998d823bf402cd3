package walk

import (
	"fmt"
	"io/fs"
)

// Stored are files that a store holds instead of a folder. Paths are clean; the
// error for a missing one wraps fs.ErrNotExist. Read returns the text of a file, as
// the indexer made it, and an info whose Sys is the hash of the file, a string.
type Stored interface {
	Stat(path string) (fs.FileInfo, error)
	Read(path string) ([]byte, fs.FileInfo, error)
}

// Virtual returns a Tree without roots whose Stat and ReadFile read a store. It
// has nothing to walk.
func Virtual(s Stored) *Tree { return &Tree{stored: s} }

func (t *Tree) readStored(p string, limit int64) ([]byte, fs.FileInfo, error) {
	clean, err := Clean(p)
	if err != nil {
		return nil, nil, err
	}
	data, info, err := t.stored.Read(clean)
	if err == nil && int64(len(data)) > limit {
		err = ErrSize
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", p, err)
	}
	return data, info, nil
}
