package docs

import "cairn/internal/store"

// Source holds the documents of a Store made by Remote, which other processes
// write. Every method may ask a server, is safe for concurrent use, and answers
// from the state at its own call.
type Source interface {
	// State returns the description and the counts of the index.
	State() (Meta, Counts, error)
	// Load returns the documents at those paths that exist. The caller does
	// not change them.
	Load(paths []string) (map[string]Loaded, error)
	// File returns the record of path; ok is false when there is no such document.
	File(path string) (f File, ok bool, err error)
	// Files calls fn with every file whose path begins with prefix, in path
	// order, until it returns false.
	Files(prefix string, fn func(File) bool) error
}

// Loaded is a document with its text, both of one version.
type Loaded struct {
	Document *store.Document
	Text     []byte
}

// Remote returns a store that reads from a source. It cannot be written: what
// changes documents or marks fails with kv.ErrReadOnly.
func Remote(s Source) *Store { return &Store{source: s} }

// IsRemote reports whether another process writes the documents: see Remote.
func (s *Store) IsRemote() bool { return s.source != nil }

// Remote reports whether reading a document that was not prefetched costs a call.
func (r *Reader) Remote() bool { return r.store.source != nil }

// Prefetch loads the documents at paths for Document and Text. A remote store
// reads them in one call and keeps them for the length of the View, since offsets
// into a text belong to its version. For a local store it does nothing.
func (r *Reader) Prefetch(paths []string) error {
	if r.store.source == nil {
		return nil
	}
	found, err := r.store.source.Load(paths)
	if err != nil {
		return err
	}
	if r.loaded == nil {
		r.loaded = map[string]Loaded{}
	}
	for _, path := range paths {
		r.loaded[path] = found[path]
	}
	return nil
}

// load returns a document of a remote store, nil when there is none.
func (r *Reader) load(path string) (*store.Document, error) {
	if _, ok := r.loaded[path]; !ok {
		if err := r.Prefetch([]string{path}); err != nil {
			return nil, err
		}
	}
	return r.loaded[path].Document, nil
}
