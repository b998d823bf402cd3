package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cairn/internal/owner"
	"cairn/internal/query"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/flat"
	"cairn/internal/store/keyword"
	"cairn/models"
)

// The keyword index and the vectors are derived from the documents, which hold the
// text. The owner renames one that cannot be opened to its name with this suffix and
// builds it again. The next damaged one replaces it.
const damagedSuffix = ".damaged"

// unusable reports whether err, of opening a derived index, means that it has to
// be built again from the documents.
func unusable(err error) bool {
	_, badVectors := errors.AsType[*flat.CorruptError](err)
	_, otherVectors := errors.AsType[*flat.FormatError](err)
	return badVectors || otherVectors || errors.Is(err, keyword.ErrCorrupt) || errors.Is(err, keyword.ErrFormat) || errors.Is(err, fs.ErrNotExist)
}

// openDerived opens the derived index in folder name of dir. With write, it renames a
// damaged one and opens an empty one in its place; a reader gets the zero T. damage
// is what was wrong.
func openDerived[T any](dir, name string, write bool, damaged func(error) bool, open func(path string) (T, error)) (x T, damage, err error) {
	path := filepath.Join(dir, name)
	x, err = open(path)
	if err == nil || !damaged(err) {
		return x, nil, err
	}
	damage = err
	var none T
	if !write {
		return none, damage, nil
	}
	if err := os.RemoveAll(path + damagedSuffix); err != nil {
		return none, nil, fmt.Errorf("renaming a damaged index: %w", err)
	}
	if err := os.Rename(path, path+damagedSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, nil, fmt.Errorf("renaming a damaged index: %w", err)
	}
	x, err = open(path)
	return x, damage, err
}

// removeEmpty removes an index whose file of documents is empty, as a full disk or a
// power failure may leave it: the other files belong to no index. It reports whether
// it did so.
func removeEmpty(dir string, d models.Description) (bool, error) {
	info, err := os.Stat(filepath.Join(dir, documentsFile))
	if err != nil || !info.Mode().IsRegular() || info.Size() > 0 {
		return false, nil // opening it reports other errors
	}
	return true, removeIndex(dir, d)
}

// errEmpty is what is wrong with an index that should hold something.
var errEmpty = errors.New("it is empty, the documents are not")

// markDamaged marks the documents for the indexes that were damaged, and for those
// that are empty though they should not be: they were removed, or a process ended
// between renaming them and marking. A reader closes these.
func (s *Stores) markDamaged() error {
	counts, err := s.Docs.Counts()
	if err != nil {
		return err
	}
	if s.Keyword != nil && s.textDamage == nil && counts.Chunks > counts.Keyword.Chunks {
		if n, err := s.Keyword.Count(); err == nil && n == 0 {
			s.textDamage = errEmpty
		}
	}
	if s.Vectors != nil && s.vectorDamage == nil && counts.Chunks > counts.Vectors.Chunks {
		if n, err := s.Vectors.Count(); err == nil && n == 0 {
			s.vectorDamage = errEmpty
		}
	}
	if !s.writable {
		if s.textDamage != nil {
			s.Keyword = nil
		}
		if s.vectorDamage != nil {
			s.Vectors = nil
		}
		return nil
	}
	ctx := context.Background()
	if s.textDamage != nil {
		if err := s.Docs.Renew(ctx, docs.Keyword); err != nil {
			return fmt.Errorf("marking all documents for the keyword index: %w", err)
		}
	}
	if s.vectorDamage != nil {
		if err := s.Docs.Renew(ctx, docs.Vectors); err != nil {
			return fmt.Errorf("marking all documents for the vectors: %w", err)
		}
	}
	return nil
}

// lacksKeywords reports whether the keyword index was unusable and is not
// complete again.
func (s *Stores) lacksKeywords() bool {
	if s.textDamage == nil || s.repaired.Load() {
		return false
	}
	counts, err := s.Docs.Counts()
	if s.Keyword != nil && err == nil && counts.Keyword.Files == 0 {
		s.repaired.Store(true)
		return false
	}
	return true
}

// keywordsHint says what to do about a keyword index that is missing.
func (s *Stores) keywordsHint() string {
	if s.writable {
		return "the keyword index was damaged and is being rebuilt from the documents; meanwhile answers are found by meaning alone"
	}
	return "the keyword index is damaged, so answers are found by meaning alone: call the tool index, or run `cairn index`, to rebuild it"
}

// repair fills the damaged indexes, in a process that does not index by itself.
func (x *Index) repair(ctx context.Context, progress func(Progress)) (*IndexReport, error) {
	ix, _, err := x.writer()
	if err != nil {
		return nil, err
	}
	if err := ix.Keywords(ctx, nil); err != nil {
		return nil, err
	}
	if _, err := ix.Embed(ctx); err != nil {
		return nil, err
	}
	return &IndexReport{}, nil
}

// checkHeld fails with owner.ErrEnded when this process must not write to s, because
// it does not own the folder any more or files of s were removed.
func (x *Index) checkHeld(s *Stores) error {
	if x.o.Held != nil && !x.o.Held() || s.removed() {
		return owner.ErrEnded
	}
	return nil
}

// heldKeyword is a keyword index that checks checkHeld before it writes.
type heldKeyword struct {
	store.Keyword
	check func() error
}

func (k heldKeyword) Update(ctx context.Context, entries []store.KeywordEntry, stale []string) error {
	if err := k.check(); err != nil {
		return err
	}
	return k.Keyword.Update(ctx, entries, stale)
}

// heldVectors is a vector store that checks checkHeld before it writes.
type heldVectors struct {
	store.Vectors
	check func() error
}

func (v heldVectors) Update(ctx context.Context, entries []store.VectorEntry, stale []string) error {
	if err := v.check(); err != nil {
		return err
	}
	return v.Vectors.Update(ctx, entries, stale)
}

// noKeywords is a keyword index that finds nothing, in the place of one that cannot be
// opened.
type noKeywords struct{}

func (noKeywords) Update(context.Context, []store.KeywordEntry, []string) error {
	return ErrReadOnly // unreachable: a reader writes nothing
}

func (noKeywords) Search(context.Context, query.Query, int, store.Filter) ([]store.Hit, error) {
	return nil, nil
}

// Admits cannot check exclusions; without them an answer is degraded anyway.
func (noKeywords) Admits(_ context.Context, q query.Query, chunks []string) ([]bool, error) {
	admits := make([]bool, len(chunks))
	for i := range admits {
		admits[i] = len(q.Phrases) == 0
	}
	return admits, nil
}

func (noKeywords) Count() (int, error) { return 0, nil }

func (noKeywords) Close() error { return nil }
