package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cairn/internal/query"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/flat"
	"cairn/internal/store/keyword"
)

// Both indexes are derived from the documents, which hold the text. One that
// cannot be opened is set aside under its name with this ending, for whoever
// wants to know what became of it, and made anew; the cache of embeddings spares
// the model. The next one set aside takes its place.
const asideSuffix = ".damaged"

// KeywordsLacking is what Answer.Degraded and Status.Degraded call a keyword
// index that is damaged and not made anew yet. Answers are found by meaning then.
const KeywordsLacking = "keywords"

// unusable reports whether err, of opening a derived index, means that it has to
// be made anew from the documents.
func unusable(err error) bool {
	_, badVectors := errors.AsType[*flat.CorruptError](err)
	_, otherVectors := errors.AsType[*flat.FormatError](err)
	return badVectors || otherVectors || errors.Is(err, keyword.ErrCorrupt) || errors.Is(err, keyword.ErrFormat) || errors.Is(err, fs.ErrNotExist)
}

// opening opens the derived index in folder name of dir. Where it is damaged, an
// owner sets it aside and opens an empty one; for a reader there is none, the
// zero T. damage is what was wrong.
func opening[T any](dir, name string, owning bool, damaged func(error) bool, open func(path string) (T, error)) (x T, damage, err error) {
	path := filepath.Join(dir, name)
	x, err = open(path)
	if err == nil || !damaged(err) {
		return x, nil, err
	}
	damage = err
	var none T
	if !owning {
		return none, damage, nil
	}
	if err := os.RemoveAll(path + asideSuffix); err != nil {
		return none, nil, fmt.Errorf("setting a damaged index aside: %w", err)
	}
	if err := os.Rename(path, path+asideSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return none, nil, fmt.Errorf("setting a damaged index aside: %w", err)
	}
	x, err = open(path)
	return x, damage, err
}

// emptied makes room for a new index where the file of the documents is empty, as
// a full disk or a power failure may leave it: it holds no index, and what lies
// beside it belongs to none. It reports whether it did so.
func emptied(dir string) (bool, error) {
	info, err := os.Stat(filepath.Join(dir, documentsFile))
	if err != nil || !info.Mode().IsRegular() || info.Size() > 0 {
		return false, nil // whoever opens it says what is wrong
	}
	return true, wipe(dir)
}

// renew marks the documents for the indexes that were set aside, and for those
// that hold nothing though they should: they were removed, or set aside by a
// process that ended before it came to that. A reader does without these.
func (s *stores) renew(owning bool) error {
	counts, err := s.docs.Counts()
	if err != nil {
		return err
	}
	if s.text != nil && s.noText == nil && counts.Chunks > counts.Keyword.Chunks {
		if n, err := s.text.Count(); err == nil && n == 0 {
			s.noText = errEmpty
		}
	}
	if s.vectors != nil && s.noVectors == nil && counts.Chunks > counts.Vectors.Chunks {
		if n, err := s.vectors.Count(); err == nil && n == 0 {
			s.noVectors = errEmpty
		}
	}
	if !owning {
		var errs []error
		if s.text != nil && s.noText != nil {
			errs = append(errs, s.text.Close())
			s.text = nil
		}
		if s.vectors != nil && s.noVectors != nil {
			errs = append(errs, s.vectors.Close())
			s.vectors = nil
		}
		return errors.Join(errs...)
	}
	ctx := context.Background()
	if s.noText != nil {
		if err := s.docs.Renew(ctx, docs.Keyword); err != nil {
			return fmt.Errorf("marking all documents for the keyword index: %w", err)
		}
	}
	if s.noVectors != nil {
		if err := s.docs.Renew(ctx, docs.Vectors); err != nil {
			return fmt.Errorf("marking all documents for the vectors: %w", err)
		}
	}
	return nil
}

// errEmpty is what is wrong with an index that should hold something.
var errEmpty = errors.New("it is empty, the documents are not")

// lacksKeywords reports whether the keyword index was unusable and is not
// complete again.
func (s *stores) lacksKeywords() bool {
	if s.noText == nil || s.mended.Load() {
		return false
	}
	counts, err := s.docs.Counts()
	if s.text != nil && err == nil && counts.Keyword.Files == 0 {
		s.mended.Store(true)
		return false
	}
	return true
}

// keywordsHint says what to do about a keyword index that is lacking.
func (l *local) keywordsHint() string {
	if l.me != nil {
		return "the keyword index was damaged and is being made anew from the documents; meanwhile answers are found by meaning alone"
	}
	return "the keyword index is damaged, so answers are found by meaning alone: call the tool index, or run `cairn index`, to make it anew"
}

// mend makes what was set aside anew, in a process that does not index by itself.
func (l *local) mend(ctx context.Context, progress func(Progress)) (*IndexReport, error) {
	x, _, err := l.writer()
	if err != nil {
		return nil, err
	}
	if err := x.Keywords(ctx, nil); err != nil {
		return nil, err
	}
	if _, err := x.Embed(ctx); err != nil {
		return nil, err
	}
	return &IndexReport{}, nil
}

// notice tells of an index that is made anew.
func (w *Workspace) notice(what string, why error) {
	if w.options.Notice != nil {
		w.options.Notice(fmt.Sprintf("%s: %v; it is made anew", what, why))
		return
	}
	w.options.Logger.Warn(what+"; it is made anew", "reason", why)
}

// noKeywords stands in for a keyword index that cannot be opened: it finds nothing.
type noKeywords struct{}

func (noKeywords) Update(context.Context, []store.KeywordEntry, []string) error {
	return errReadOnly // unreachable: a reader writes nothing
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
