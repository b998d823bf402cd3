package docs

import (
	"bytes"
	"encoding/hex"

	"cairn/internal/checksum"
	"cairn/internal/kv"
	"cairn/internal/store"
)

// Reader is one reading transaction: everything it returns belongs to one state.
// It must not be used after View returns, nor by several goroutines at once.
type Reader struct {
	buckets
	store   *Store
	version int
	loaded  map[string]Loaded // of a remote store, by path; zero where there is none
}

// buckets are the buckets in one transaction.
type buckets struct {
	meta, files, documents, texts, skipped *kv.Bucket
	marks                                  [2]*kv.Bucket // by Kind
}

func openBuckets(tx *kv.Tx) (b buckets, err error) {
	for _, named := range []struct {
		name   string
		bucket **kv.Bucket
	}{
		{"meta", &b.meta}, {"files", &b.files}, {"documents", &b.documents}, {"texts", &b.texts},
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

// view returns what read returns, in a transaction of its own.
func view[T any](s *Store, read func(*Reader) (T, error)) (out T, err error) {
	err = s.View(func(r *Reader) (err error) {
		out, err = read(r)
		return err
	})
	return out, err
}

// Document returns the document at path, nil when there is none. Callers share it
// and must not change it. It stays valid after View returns.
func (r *Reader) Document(path string) (*store.Document, error) {
	if r.store.source != nil {
		return r.load(path)
	}
	entry := r.files.Get([]byte(path))
	if entry == nil {
		return nil, nil
	}
	// The entry changes with every write of the document, so the key holds it.
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

// Text returns the bytes of the file as indexed, nil when there is none. They
// are valid, and must not be changed, until View returns. A remote store knows
// the texts of documents that were asked for in the same View.
func (r *Reader) Text(path string) []byte {
	if r.store.source != nil {
		return r.loaded[path].Text
	}
	if r.files.Get([]byte(path)) == nil {
		return nil
	}
	return r.texts.Need([]byte(path))
}

// Version changes with every write; 0 where that is not known, as of a remote store.
// The retriever takes a document that an index finds and this store lacks for damage
// unless the version has changed meanwhile.
func (r *Reader) Version() int { return r.version }

// Version is Reader.Version in a transaction of its own.
func (s *Store) Version() (int, error) {
	return view(s, func(r *Reader) (int, error) { return r.version, nil })
}

// File is the record that a walk compares a file with.
type File struct {
	Path string
	// Hash is the SHA-256 of the whole file.
	Hash [hashSize]byte
	// Size in bytes, ModTime and ChangeTime in Unix nanoseconds. ChangeTime is 0
	// when it was not recorded.
	Size, ModTime, ChangeTime int64
	Sections, Chunks          int

	seq uint64 // of the transaction that stored the document
}

// HexHash returns Hash as store.Document.Hash has it.
func (f *File) HexHash() string { return hex.EncodeToString(f.Hash[:]) }

// File returns the record of path; ok is false when it is not indexed.
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

// Files calls fn with every indexed file whose path begins with prefix, in
// path order, until it returns false. No document is decoded.
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
		r.files.ForEach(each) // it notices missing files
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
	return decodeCounts(r.meta.Get([]byte("counts")))
}

// Skipped returns the files that are not indexed, in path order. A remote
// store knows of none.
func (r *Reader) Skipped() []Skipped {
	if r.store.source != nil {
		return nil
	}
	var skipped []Skipped
	r.skipped.ForEach(func(k, v []byte) bool {
		skipped = append(skipped, decodeSkipped(string(k), v))
		return true
	})
	return skipped
}

// Verify reads the whole file and compares all checksums. A remote store has none.
func (s *Store) Verify() (checksum.File, error) {
	if s.source != nil {
		return checksum.File{}, nil
	}
	return s.db.Verify()
}

// Document is Reader.Document in a transaction of its own.
func (s *Store) Document(path string) (*store.Document, error) {
	return view(s, func(r *Reader) (*store.Document, error) { return r.Document(path) })
}

// Text returns a copy of the file's bytes as indexed; ok is false when there
// is no such document.
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
