package docs

import (
	"bytes"
	"encoding/hex"

	"cairn/internal/base/health"
	"cairn/internal/store"
	"cairn/internal/store/kv"
	"cairn/internal/store/ngram"
)

// Reader is a read transaction: everything that it returns belongs to one state of the
// store. It must not be used after View returns or by several goroutines concurrently.
type Reader struct {
	buckets // nil for a remote store: only its writer has marks, filters and skipped files
	store   *Store
	version int
	loaded  map[string]Loaded // prefetched from a remote store, by path; zero for a missing document
}

// buckets holds the buckets of one transaction.
type buckets struct {
	meta, files, documents, texts, grams, skipped *kv.Bucket
	marks                                         [2]*kv.Bucket // by Kind
}

func openBuckets(tx *kv.Tx) (b buckets, err error) {
	for _, named := range []struct {
		name   string
		bucket **kv.Bucket
	}{
		{"meta", &b.meta}, {"files", &b.files}, {"documents", &b.documents}, {"texts", &b.texts}, {"grams", &b.grams},
		{"skipped", &b.skipped}, {"text", &b.marks[Keyword]}, {"vectors", &b.marks[Vectors]},
	} {
		if *named.bucket, err = tx.Bucket(named.name); err != nil {
			return b, err
		}
	}
	return b, nil
}

// View calls fn with a reader and returns fn's error.
func (s *Store) View(fn func(*Reader) error) error {
	if s.source != nil {
		return fn(&Reader{store: s})
	}
	return s.db.View(func(tx *kv.Tx) error {
		b, err := openBuckets(tx)
		if err != nil {
			return err
		}
		return fn(&Reader{buckets: b, store: s, version: tx.ID()})
	})
}

// view calls read in a transaction of its own.
func view[T any](s *Store, read func(*Reader) (T, error)) (out T, err error) {
	err = s.View(func(r *Reader) (err error) {
		out, err = read(r)
		return err
	})
	return out, err
}

// Document returns the document at path, or nil if there is none. The document is shared;
// callers must not modify it. It remains valid after View returns.
func (r *Reader) Document(path string) (*store.Document, error) {
	if r.store.source != nil {
		return r.load(path)
	}
	entry := r.files.Get([]byte(path))
	if entry == nil {
		return nil, nil
	}
	// The key includes the entry, which changes with every write of the document.
	key := path + "\x00" + string(entry)
	if d, ok := r.store.cache.Get(key); ok {
		return d, nil
	}
	f, err := decodeFile(path, entry)
	if err != nil {
		return nil, err
	}
	d, err := decodeDocument(&f, r.documents.Need([]byte(path)))
	if err != nil {
		return nil, err
	}
	r.store.cache.Add(key, d)
	return d, nil
}

// Text returns the bytes of the file as indexed, or nil if there are none. They are valid
// until View returns and must not be modified. A remote store has only the texts of
// documents that were loaded in the same View.
func (r *Reader) Text(path string) []byte {
	if r.store.source != nil {
		return r.loaded[path].Text
	}
	if r.files.Get([]byte(path)) == nil {
		return nil
	}
	return r.texts.Need([]byte(path))
}

// Grams returns the filter of the file, "" if it is not known.
func (r *Reader) Grams(path string) ngram.Filter {
	return ngram.Filter(r.grams.Get([]byte(path)))
}

// Version returns a number that changes with every write, or 0 for a remote store. If an
// index finds a document that the store does not have, the retriever reports damage
// unless the version has changed.
func (r *Reader) Version() int { return r.version }

// Version is Reader.Version in a transaction of its own.
func (s *Store) Version() (int, error) {
	return view(s, func(r *Reader) (int, error) { return r.version, nil })
}

// File is the record with which the indexer compares a file.
type File struct {
	Path string
	// Hash is the SHA-256 of the whole file.
	Hash [hashSize]byte
	// Size is in bytes; ModTime and ChangeTime are in Unix nanoseconds. ChangeTime is 0
	// if unknown.
	Size, ModTime, ChangeTime int64
	Sections, Chunks          int

	seq uint64 // of the transaction that stored the document
}

// HexHash returns Hash in hex, as in store.Document.
func (f *File) HexHash() string { return hex.EncodeToString(f.Hash[:]) }

// File returns the record of path; ok is false if path is not indexed.
func (r *Reader) File(path string) (f File, ok bool, err error) {
	if r.store.source != nil {
		return r.store.source.File(path)
	}
	entry := r.files.Get([]byte(path))
	if entry == nil {
		return File{}, false, nil
	}
	f, err = decodeFile(path, entry)
	return f, err == nil, err
}

// Files calls fn with every indexed file whose path begins with prefix, in path order,
// until fn returns false. It does not decode documents.
func (r *Reader) Files(prefix string, fn func(File) bool) error {
	if r.store.source != nil {
		return r.store.source.Files(prefix, fn)
	}
	var err error
	each := func(k, v []byte) bool {
		var f File
		if f, err = decodeFile(string(k), v); err != nil {
			return false
		}
		return fn(f)
	}
	if prefix == "" {
		r.files.ForEach(each) // ForEach detects missing entries
	} else {
		r.files.Prefix([]byte(prefix), each)
	}
	return err
}

// Counts returns the number of files, sections, chunks and pending marks.
func (r *Reader) Counts() (Counts, error) {
	if r.store.source != nil {
		_, counts, err := r.store.source.State()
		return counts, err
	}
	return decodeCounts(r.meta)
}

// Skipped returns the files that are not indexed, in path order. A remote store does not
// record them.
func (r *Reader) Skipped() []Skipped {
	var skipped []Skipped
	r.skipped.ForEach(func(k, v []byte) bool {
		skipped = append(skipped, decodeSkipped(string(k), v))
		return true
	})
	return skipped
}

// Verify reads the whole database and compares all checksums. For a remote store it does
// nothing.
func (s *Store) Verify() (health.File, error) {
	if s.source != nil {
		return health.File{}, nil
	}
	return s.db.Verify()
}

// Document is Reader.Document in a transaction of its own.
func (s *Store) Document(path string) (*store.Document, error) {
	return view(s, func(r *Reader) (*store.Document, error) { return r.Document(path) })
}

// Text returns a copy of the file's bytes as indexed; ok is false if there is no such
// document.
func (s *Store) Text(path string) (text []byte, ok bool, err error) {
	err = s.View(func(r *Reader) error {
		if s.source != nil {
			if _, err := r.Document(path); err != nil {
				return err
			}
		}
		stored := r.Text(path)
		text, ok = bytes.Clone(stored), stored != nil
		return nil
	})
	return text, ok, err
}

// Files returns all indexed files by path, in one transaction.
func (s *Store) Files() (map[string]File, error) {
	files := map[string]File{}
	return view(s, func(r *Reader) (map[string]File, error) {
		return files, r.Files("", func(f File) bool {
			files[f.Path] = f
			return true
		})
	})
}

// Skipped is Reader.Skipped in a transaction of its own.
func (s *Store) Skipped() ([]Skipped, error) {
	return view(s, func(r *Reader) ([]Skipped, error) { return r.Skipped(), nil })
}
