package docs

import (
	"encoding/hex"
	"fmt"

	"cairn/internal/store"
)

// Source is where the documents of a Store made by Remote are: a store that
// other processes write. Every method may ask a server, may be called
// concurrently, and answers as of its own moment.
type Source interface {
	// State returns what is known of the index as a whole.
	State() (Meta, Counts, error)
	// Load returns a document with its text, both of one version; nil when
	// there is none. Neither is changed by the caller.
	Load(path string) (*store.Document, []byte, error)
	// File returns what is recorded of path; ok is false when there is no such document.
	File(path string) (f File, ok bool, err error)
	// Files calls fn with every file whose path begins with prefix, in path
	// order, until it returns false.
	Files(prefix string, fn func(File) bool) error
}

// Remote returns a store that reads from a source. It cannot be written: what
// changes documents or marks fails with kv.ErrReadOnly.
func Remote(s Source) *Store { return &Store{source: s} }

// load is Document and Text of a remote store: the text is kept for the length
// of the View, since offsets into it belong to that version.
func (r *Reader) load(path string) (*store.Document, error) {
	doc, text, err := r.store.source.Load(path)
	if err != nil || doc == nil {
		return nil, err
	}
	if r.loaded == nil {
		r.loaded = map[string][]byte{}
	}
	if text == nil {
		text = []byte{}
	}
	r.loaded[path] = text
	return doc, nil
}

// NewFile makes a File of what a Source knows; hash is in hex.
func NewFile(path, hash string, size, modTime int64, sections, chunks int) (File, error) {
	f := File{Path: path, Size: size, ModTime: modTime, Sections: sections, Chunks: chunks}
	if n, err := decodeHash(&f, hash); err != nil || n != hashSize {
		return f, &CorruptError{Path: path, Reason: fmt.Sprintf("its hash is %q", hash)}
	}
	return f, nil
}

func decodeHash(f *File, hash string) (int, error) {
	if len(hash) != 2*hashSize {
		return 0, nil
	}
	return hex.Decode(f.Hash[:], []byte(hash))
}
