// Package docs stores the documents of a workspace, from which the keyword index
// and the vectors can be rebuilt. It does not search.
//
// It stores the parsed document and the text of each file, and marks the documents whose
// current version is not in a derived index yet. One transaction changes a document and
// its marks. The indexer reads marks (Pending), updates the index, and clears the marks
// (Done). A crash at any point leaves the marks, and the work can be repeated safely.
//
// # Buckets, format 8
//
// Numbers are little-endian. Keys are paths, except in the bucket meta.
//
//	meta       JSON of Meta and of Counts
//	files      seq uint64, size, mtime and ctime int64, SHA-256 (32 bytes), sections
//	           uint32, chunks uint32; ctime is 0 if unknown
//	documents  title, labels and sections, see codec.go
//	texts      the file's bytes as indexed
//	grams      the file's ngram.Filter, if it is known
//	text, vectors
//	           pending marks: seq uint64, sections uint32, chunks uint32, then
//	           the ids of stale chunks
//	skipped    the reason why the file is not indexed; if that is its content,
//	           also a NUL, its size, mtime, ctime and time of the next attempt
//	           int64, and its ngram.Filter
//
// An index with an earlier format is rebuilt.
package docs

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/internal/store"
	"cairn/internal/store/kv"
	"cairn/models"
)

// FormatVersion is the version of the buckets.
const FormatVersion = 8

// DefaultCache is the number of decoded documents in the cache, about 5 kB each.
const DefaultCache = 2048

// Options configures Open. Nil and the zero value mean the defaults.
type Options struct {
	// Model is the model for the vectors of the index. The zero Description accepts the
	// model of an existing index.
	Model models.Description
	// Chunks names the rules that divide documents into chunks and make the entries of
	// both indexes. "" accepts the rules of an existing index.
	Chunks string
	// Cache is the number of decoded documents to cache; 0 means DefaultCache.
	Cache int
}

// ErrNoIndex reports a read-only database without a document store.
var ErrNoIndex = errors.New("no index has been made yet")

// FormatError reports an index with another format.
type FormatError struct{ Have, Want uint32 }

func (e *FormatError) Error() string {
	return fmt.Sprintf("the index has format %d, this version reads format %d", e.Have, e.Want)
}

// ModelError reports an index of another model. Have and Want are IDs.
type ModelError struct{ Have, Want string }

func (e *ModelError) Error() string {
	return fmt.Sprintf("the index was made with model %s, not %s", e.Have, e.Want)
}

// ChunksError reports an index that was made by other rules. Have and Want are as in
// Options.Chunks.
type ChunksError struct{ Have, Want string }

func (e *ChunksError) Error() string {
	return "the index was made by another version of cairn or with other settings for secrets"
}

// CorruptError reports a stored document that cannot be read.
type CorruptError struct{ Path, Reason string }

func (e *CorruptError) Error() string {
	return fmt.Sprintf("the stored document %q is damaged: %s", e.Path, e.Reason)
}

// Store stores documents. It is safe for concurrent use by one writer and any number of
// readers, which see only complete transactions.
type Store struct {
	db     *kv.DB
	cache  *lru.Cache[string, *store.Document]
	source Source // used instead of db and cache; see Remote
}

// Open opens the store in db, which the caller closes. It records the format, the model
// and the rules for chunks in a new store. If the store has another format, model or
// rules, Open changes nothing and fails with *FormatError, *ModelError or *ChunksError.
// It fails with ErrNoIndex if the store is new and read-only.
func Open(db *kv.DB, o *Options) (*Store, error) {
	options := *cmp.Or(o, &Options{})
	if options.Cache <= 0 {
		options.Cache = DefaultCache
	}
	cache, _ := lru.New[string, *store.Document](options.Cache) // never fails: the size is positive
	s := &Store{db: db, cache: cache}
	meta, err := s.Meta()
	if err != nil && !errors.Is(err, ErrNoIndex) {
		return nil, err
	}
	fresh := err != nil
	want, chunks := options.Model.ID, options.Chunks
	switch {
	case fresh && db.ReadOnly():
		return nil, ErrNoIndex
	case want != "" && meta.Model.ID != "" && meta.Model.ID != want:
		return nil, &ModelError{Have: meta.Model.ID, Want: want}
	case chunks != "" && meta.Chunks != "" && meta.Chunks != chunks:
		return nil, &ChunksError{Have: meta.Chunks, Want: chunks}
	case db.ReadOnly() || !fresh && (want == "" || meta.Model.ID == want) && (chunks == "" || meta.Chunks == chunks):
		return s, nil
	}
	return s, s.update(context.Background(), 1, func(w *writer, _ int) error {
		return w.changeMeta(func(m *Meta) {
			m.Format = FormatVersion
			m.Chunks = cmp.Or(chunks, m.Chunks)
			if want != "" {
				m.Model = options.Model
			}
		})
	})
}
