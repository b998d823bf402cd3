package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"cairn/indexer"
	"cairn/internal/kv"
	"cairn/internal/mirror"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/flat"
	"cairn/internal/store/keyword"
	"cairn/internal/store/vectorcache"
	"cairn/internal/walk"
	"cairn/models"
)

// What lies in the index's folder, beside the lock and the socket.
const (
	documentsFile = "documents.db"
	keywordFolder = "keywords"
	vectorFolder  = "vectors"
	cacheFile     = "embeddings" // survives a rebuild: it is keyed by model and text
)

// stores are the open files of an index.
type stores struct {
	db      *kv.DB
	docs    *docs.Store
	text    *keyword.Index     // nil in a reader where it is unusable
	vectors *flat.Store        // nil in a reader where they are unusable
	cache   *vectorcache.Cache // nil in a reader
	files   *walk.Tree
	mirror  *mirror.Mirror // nil unless a Qdrant store is kept up to date with the index
	paths   []string       // what has to be there while the stores are open
	// noText and noVectors are what was wrong with the index as it was found;
	// mended is set when the keyword index is complete again.
	noText, noVectors error
	mended            atomic.Bool
}

// keyword is the keyword index in use.
func (s *stores) keyword() store.Keyword {
	if s.text == nil {
		return noKeywords{}
	}
	return s.text
}

// nearest is the vector store in use; nil where there is none.
func (s *stores) nearest() store.Vectors {
	if s.vectors == nil {
		return nil
	}
	return s.vectors
}

// apart is Access for who reads without the lock, beside an owner that has come
// to a halt.
const apart = Owning + 1

// openStores opens the index in dir of a workspace, for a model. An
// index that exists but cannot be used as it is gives a *RebuildError, one that
// does not exist, unless it is to be owned, ErrNoIndex. With mend, indexes that
// are derived from the documents may be unusable: see stores.noText.
func openStores(sel Selection, dir string, d models.Description, access Access, mend bool, log *slog.Logger) (s *stores, err error) {
	s = &stores{paths: removable(dir)}
	readOnly := access != Owning
	defer func() {
		if err != nil {
			s.close()
			s, err = nil, openError(err, d)
		}
	}()
	if s.files, err = walk.Open(sel.Roots()...); err != nil {
		return s, err
	}
	if s.db, err = kv.Open(filepath.Join(dir, documentsFile), &kv.Options{ReadOnly: readOnly}); err != nil {
		return s, err
	}
	if s.docs, err = docs.Open(s.db, &docs.Options{Model: d, Chunks: indexer.ChunkFormat(d, nil)}); err != nil {
		return s, err
	}
	openText := func(path string) (*keyword.Index, error) {
		if access == apart {
			return keyword.OpenAside(path)
		}
		return keyword.Open(path, &keyword.Options{ReadOnly: readOnly})
	}
	openVectors := func(path string) (*flat.Store, error) {
		return flat.Open(path, d.Dimension, d.ID, &flat.Options{ReadOnly: readOnly, Logger: log})
	}
	damaged := func(err error) bool { return mend && unusable(err) }
	if s.text, s.noText, err = opening(dir, keywordFolder, !readOnly, damaged, openText); err != nil {
		return s, err
	}
	if s.vectors, s.noVectors, err = opening(dir, vectorFolder, !readOnly, damaged, openVectors); err != nil {
		return s, err
	}
	if mend {
		if err = s.renew(!readOnly); err != nil {
			return s, err
		}
	}
	if readOnly {
		return s, nil
	}
	s.cache, err = vectorcache.Open(filepath.Join(dir, cacheFile), d.ID, d.Dimension, &vectorcache.Options{Logger: log})
	return s, err
}

// openError says what to do about an index that does not open.
func openError(err error, d models.Description) error {
	if e, ok := errors.AsType[*docs.FormatError](err); ok {
		return &RebuildError{fmt.Sprintf("the index has format %d and this cairn reads format %d", e.Have, e.Want)}
	}
	if e, ok := errors.AsType[*docs.ModelError](err); ok {
		return &RebuildError{fmt.Sprintf("the index was made with model %s and this is %s", e.Have, e.Want)}
	}
	if e, ok := errors.AsType[*docs.ChunksError](err); ok {
		return &RebuildError{fmt.Sprintf("the index was cut by the rules %q and this cairn cuts by %q", e.Have, e.Want)}
	}
	if e, ok := errors.AsType[*flat.ModelError](err); ok {
		return &RebuildError{fmt.Sprintf("the index was made with model %s and this is %s", e.Have, e.Want)}
	}
	if e, ok := errors.AsType[*flat.DimensionError](err); ok {
		return &RebuildError{fmt.Sprintf("the index has vectors of dimension %d and model %s makes %d", e.Have, d.ID, e.Want)}
	}
	if e, ok := errors.AsType[*flat.FormatError](err); ok {
		return &RebuildError{fmt.Sprintf("the vectors have format %d and this cairn reads format %d", e.Have, e.Want)}
	}
	if errors.Is(err, docs.ErrNoIndex) || errors.Is(err, fs.ErrNotExist) {
		return ErrNoIndex
	}
	_, badDocs := errors.AsType[*kv.CorruptError](err)
	_, badVectors := errors.AsType[*flat.CorruptError](err)
	if badDocs || badVectors || errors.Is(err, keyword.ErrCorrupt) || errors.Is(err, keyword.ErrFormat) {
		return &RebuildError{err.Error()}
	}
	return err
}

// close closes what is open.
func (s *stores) close() error {
	var errs []error
	if s.mirror != nil {
		errs = append(errs, s.mirror.Close())
	}
	if s.cache != nil {
		errs = append(errs, s.cache.Close())
	}
	if s.vectors != nil {
		errs = append(errs, s.vectors.Close())
	}
	if s.text != nil {
		errs = append(errs, s.text.Close())
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.files != nil {
		errs = append(errs, s.files.Close())
	}
	return errors.Join(errs...)
}

// wipe removes the index but for the cache of embeddings.
func wipe(dir string) error {
	for _, name := range []string{documentsFile, keywordFolder, vectorFolder} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("removing the old index: %w", err)
		}
	}
	return nil
}
