package index

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"cairn/indexer"
	"cairn/internal/folder/config"
	"cairn/internal/folder/mirror"
	"cairn/internal/store"
	"cairn/internal/store/docs"
	"cairn/internal/store/flat"
	"cairn/internal/store/keyword"
	"cairn/internal/store/kv"
	"cairn/internal/text/markdown"
	"cairn/internal/text/secret"
	"cairn/internal/text/walk"
	"cairn/models"
	"cairn/retriever"
)

// The files in the directory of an index.
const (
	DocumentsFile = "documents.db" // the documents, from which the others can be rebuilt
	keywordFolder = "keywords"
	vectorFolder  = "vectors"
	attemptsFile  = "attempts" // the documents that a run is working on
)

// Derived lists the files and folders of an index that the next run rebuilds.
var Derived = []string{DocumentsFile, attemptsFile, keywordFolder, keywordFolder + damagedSuffix, vectorFolder + damagedSuffix}

// Cache is the folder of the vectors. If the documents are removed, it still caches their
// embeddings, so that the next run need not compute them.
const Cache = vectorFolder

// Stores holds the open files of an index, or stores of a server.
type Stores struct {
	Docs  *docs.Store
	Files *walk.Tree // nil for stores of a server
	// Keyword and Vectors are nil in a reader if they are damaged.
	Keyword store.KeywordSearcher
	Vectors store.VectorSearcher
	// Legs, if not nil, searches Keyword and Vectors in one call.
	Legs store.LegSearcher
	// Mirror, if not nil, keeps a Qdrant store up to date; see MirrorTo.
	Mirror *mirror.Mirror
	// Cache holds the embeddings of text: the folder's own vectors, nil in a reader.
	Cache indexer.Cache
	// Close calls Closers, the last one first.
	Closers []func() error

	own      bool           // the stores are the folder's own files
	text     *keyword.Index // Keyword, if own
	vectors  *flat.Store    // Vectors, if own
	known    Damage         // as in Open
	writable bool
	paths    []string  // files that must exist while the stores are open
	indexer  sync.Once // sets writer
	writer   *indexer.Indexer
	// damage is the damage of the derived indexes when they were opened. repaired is set
	// when the keyword index is complete again.
	damage   Damage
	repaired atomic.Bool
}

// Exists reports whether dir holds an index. An empty file of documents is none.
func Exists(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, DocumentsFile))
	return err == nil && info.Size() > 0
}

// Open opens the index in dir of the folder sel, for the model d and the rules of masks.
// It fails with a *RebuildError if the index must be rebuilt, and with ErrNoIndex if a
// reader finds none. known lists damaged derived indexes. If it is not nil, Open sets these
// and others that it finds damaged aside; if it is nil, a damaged one is an error.
func Open(sel config.Selection, dir string, masks *secret.Masks, d models.Description, write bool, known Damage, log *slog.Logger) (s *Stores, err error) {
	s = &Stores{own: true, writable: write, known: known, damage: Damage{}, paths: []string{filepath.Join(dir, DocumentsFile), filepath.Join(dir, keywordFolder), filepath.Join(dir, vectorFolder)}}
	defer func() {
		if err != nil {
			s.Close()
			s, err = nil, openError(err, d)
		}
	}()
	if s.Files, err = walk.Open(sel.Roots()...); err != nil {
		return s, err
	}
	s.Closers = append(s.Closers, s.Files.Close)
	if err = s.openDocuments(dir, masks, d); err != nil {
		return s, err
	}
	s.text, err = openDerived(s, dir, keywordFolder, docs.Keyword, func(path string) (*keyword.Index, error) {
		return keyword.Open(path, &keyword.Options{ReadOnly: !write})
	})
	if err != nil {
		return s, err
	}
	if s.text != nil {
		s.Keyword = s.text
		s.Closers = append(s.Closers, s.text.Close)
	}
	s.vectors, err = openDerived(s, dir, vectorFolder, docs.Vectors, func(path string) (*flat.Store, error) {
		return flat.Open(path, d.Dimension, d.ID, &flat.Options{ReadOnly: !write, Logger: log})
	})
	if err != nil {
		return s, err
	}
	if s.vectors != nil {
		s.Vectors = s.vectors
		s.Closers = append(s.Closers, s.vectors.Close)
	}
	if write {
		for _, part := range derived { // all documents are pending for the indexes that were damaged
			if s.damage[part.name] == nil {
				continue
			}
			if err = s.Docs.Renew(context.Background(), part.kind); err != nil {
				return s, fmt.Errorf("marking all documents for %s: %w", part.what, err)
			}
		}
		if err = s.openCache(dir, log); err != nil {
			return s, err
		}
	}
	// A reader may lack some of them.
	s.paths = slices.DeleteFunc(s.paths, func(path string) bool { _, err := os.Stat(path); return err != nil })
	return s, nil
}

func (s *Stores) openDocuments(dir string, masks *secret.Masks, d models.Description) error {
	db, err := kv.Open(filepath.Join(dir, DocumentsFile), &kv.Options{ReadOnly: !s.writable, Owned: true, PageSize: 1 << 10})
	if err != nil {
		return err
	}
	s.Closers = append(s.Closers, db.Close)
	s.Docs, err = docs.Open(db, &docs.Options{Model: d, Chunks: indexer.ChunkFormat(d) + " " + markdown.Rules() + " masks=" + masks.Rules()})
	return err
}

// openCache makes the vectors the cache of embeddings. It adds the undamaged vectors of a
// damaged file, and clears the vectors of a store whose documents are gone, as after a
// rebuild; their embeddings remain in the cache.
func (s *Stores) openCache(dir string, log *slog.Logger) error {
	s.Cache = s.vectors
	if s.damage[vectorFolder] != nil {
		if n, err := s.vectors.Salvage(filepath.Join(dir, vectorFolder+damagedSuffix)); n > 0 || err != nil {
			log.Info("reading undamaged vectors of a damaged file", "vectors", n, "error", err)
		}
	}
	counts, err := s.Docs.Counts()
	if err != nil || counts.Chunks > 0 {
		return err
	}
	if n, err := s.vectors.Count(); err != nil || n == 0 {
		return err
	}
	return s.vectors.Clear(context.Background())
}

// Indexer returns an Indexer that writes to s, which must be the folder's own files.
func (s *Stores) Indexer(e models.Embedder, o *indexer.Options) *indexer.Indexer {
	return indexer.New(indexer.Stores{Files: s.Files, Docs: s.Docs, Keyword: s.text, Vectors: s.vectors, Cache: s.Cache}, e, o)
}

// Sources returns the sources of a retriever that searches s, embeds queries with model
// and counts tokens with budget.
func (s *Stores) Sources(model models.Embedder, budget models.BudgetCounter) retriever.Sources {
	words := s.Keyword
	if words == nil {
		words = noKeywords{}
	}
	return retriever.Sources{
		Documents: s.Docs, Keyword: words, Vectors: s.Vectors, Legs: s.Legs, Files: s.Files, Embedder: model, Budget: budget,
	}
}

// MirrorTo sets s.Mirror, which copies the index for a model to a Qdrant store.
func (s *Stores) MirrorTo(to *mirror.Store, model models.Embedder, o *mirror.Options) (err error) {
	s.Mirror, err = mirror.New(to, mirror.Index{
		Docs: s.Docs, Keyword: s.text, Vectors: s.vectors, Model: model.Description(),
		Chunker: func() (*indexer.Chunker, error) { return indexer.NewChunker(model, nil) },
	}, o)
	return err
}

// removed reports whether open files are missing, or the folder was removed or replaced.
// Then the process must not write, because stores open files by their names, and files of
// these names may belong to another process.
func (s *Stores) removed() bool {
	if s.Files != nil && s.Files.Moved() {
		return true
	}
	for _, path := range s.paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// Close closes what is open.
func (s *Stores) Close() error {
	var errs []error
	if s.Mirror != nil {
		errs = append(errs, s.Mirror.Close())
	}
	for _, closer := range slices.Backward(s.Closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// openError translates an error of opening an index for the model d into one of the
// errors of Open.
func openError(err error, d models.Description) error {
	_, otherFormat := errors.AsType[*docs.FormatError](err)
	_, otherModel := errors.AsType[*docs.ModelError](err)
	reason := err.Error()
	if e, ok := errors.AsType[*flat.DimensionError](err); ok {
		reason = fmt.Sprintf("the index has vectors of dimension %d and model %s makes %d", e.Have, d.ID, e.Want)
	}
	switch part := damagedPart(err); {
	case errors.Is(err, walk.ErrRoots):
	case otherFormat || otherModel || flat.OtherModel(err):
		return &RebuildError{reason, part, err}
	case errors.Is(err, docs.ErrNoIndex), errors.Is(err, fs.ErrNotExist):
		return ErrNoIndex
	case part != "":
		return &RebuildError{reason, part, err}
	}
	return err
}

// removeIndex removes the index except for the vectors, which Open clears. It removes
// vectors of a model other than d.
func removeIndex(dir string, d models.Description) error {
	names := []string{DocumentsFile, keywordFolder, attemptsFile}
	vectors, err := flat.Open(filepath.Join(dir, vectorFolder), d.Dimension, d.ID, nil)
	switch {
	case flat.OtherModel(err):
		names = append(names, vectorFolder)
	case err == nil:
		if err := vectors.Close(); err != nil {
			return fmt.Errorf("removing the old index: %w", err)
		}
	}
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("removing the old index: %w", err)
		}
	}
	return nil
}
