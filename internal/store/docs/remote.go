package docs

import "cairn/internal/store"

// Source provides the documents of a Store made by Remote. Other processes write them.
// Methods may call a server and are safe for concurrent use. Each returns the state at
// the time of its call.
type Source interface {
	// State returns the description and the counts of the index.
	State() (Meta, Counts, error)
	// Load returns the existing documents among paths. The caller must not modify them.
	Load(paths []string) (map[string]Loaded, error)
	// File returns the record of path; ok is false if there is no such document.
	File(path string) (f File, ok bool, err error)
	// Files calls fn with every file whose path begins with prefix, in path order,
	// until fn returns false.
	Files(prefix string, fn func(File) bool) error
}

// Loaded is a document with its text, both from the same version.
type Loaded struct {
	Document *store.Document
	Text     []byte
}

// Remote returns a store that reads from a source. Methods that would change documents or
// marks fail with kv.ErrReadOnly.
func Remote(s Source) *Store { return &Store{source: s} }

// IsRemote reports whether another process writes the documents: see Remote.
func (s *Store) IsRemote() bool { return s.source != nil }

// Remote reports whether reading a document that was not prefetched calls a server.
func (r *Reader) Remote() bool { return r.store.source != nil }

// Prefetch loads the documents at paths for Document and Text. A remote store reads them
// in one call and keeps them until View returns, so that the offsets of a document match
// its text. For a local store Prefetch does nothing.
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

// load returns a document of a remote store, or nil if there is none.
func (r *Reader) load(path string) (*store.Document, error) {
	if _, ok := r.loaded[path]; !ok {
		if err := r.Prefetch([]string{path}); err != nil {
			return nil, err
		}
	}
	return r.loaded[path].Document, nil
}
