package toolbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/internal/base/health"
	"cairn/internal/store"
	"cairn/internal/store/flat"
	"cairn/internal/store/keyword"
	"cairn/models"
)

// verify reads the files of the tools and compares all checksums. With repair it recovers
// damaged records, and removes damaged derived files, which are rebuilt.
func (s *Toolbox) verify(ctx context.Context, repair bool) (*health.Report, error) {
	x := &s.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := s.openIndex(0); err != nil {
		return nil, err
	}
	var parts []health.Part
	for _, f := range s.files {
		parts = append(parts, f.Part())
	}
	if v, ok := x.vectors.(*flat.Store); ok {
		parts = append(parts, s.part(vectorsFolder, v.Verify))
	}
	if x.stored {
		parts = append(parts, s.part(keywordsFolder, x.words.Verify))
	}
	return health.Check(ctx, parts, repair)
}

// part returns a folder of the derived index. The next operation rebuilds it after its
// removal.
func (s *Toolbox) part(folder string, verify func(context.Context) (health.File, error)) health.Part {
	return health.Part{
		Check: func(ctx context.Context) (health.File, error) {
			f, err := verify(ctx)
			if flat.Unusable(err) {
				f.Problems, err = append(f.Problems, err.Error()), nil
			}
			f.Name = folder
			return f, err
		},
		Repair: func(context.Context, health.File) (string, error) {
			s.damaged.Store(true)
			return "removed; it will be rebuilt", os.RemoveAll(filepath.Join(s.o.Place.Index, folder))
		},
	}
}

// keywordsFolder contains the keyword index of a large catalogue.
const keywordsFolder = "tool-keywords"

// KeywordsDir returns the folder of the keyword index of tools below dir, the folder of an
// index.
func KeywordsDir(dir string) string { return filepath.Join(dir, keywordsFolder) }

// minStored is the minimum number of tools for which the index is stored. For fewer tools,
// indexing in memory takes less time than opening files.
const minStored = 2000

// openKeywords opens the keyword index in a folder. Unless readOnly is set, an empty index
// replaces one that is damaged or of another format. created reports whether the index is
// empty.
func openKeywords(dir string, readOnly bool) (k *keyword.Index, created bool, err error) {
	if !readOnly {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		k, err = keyword.Open(dir, &keyword.Options{ReadOnly: readOnly})
	}
	if !readOnly && (errors.Is(err, keyword.ErrCorrupt) || errors.Is(err, keyword.ErrFormat)) {
		if err := os.RemoveAll(dir); err != nil {
			return nil, false, err
		}
		return openKeywords(dir, false)
	}
	if err != nil || readOnly {
		return k, false, err
	}
	n, err := k.Count()
	if err != nil {
		return nil, false, errors.Join(err, k.Close())
	}
	return k, n == 0, nil
}

// vectorsFolder contains the vectors of tools and intents by the hash of their text.
const vectorsFolder = "tool-vectors"

// maxMemoryVectors bounds a cache of vectors in memory to about 30 MB.
const maxMemoryVectors = 20_000

// openVectors opens the cache of a model's vectors: in the database, in a file, or, if that
// fails, in memory. An empty file replaces one that is damaged or of another model.
func (s *Toolbox) openVectors(d models.Description) {
	x := &s.index
	if s.database != nil {
		x.vectors = s.database.Vectors(d.ID, d.Dimension)
		return
	}
	if s.o.Place.Index != "" {
		open := flat.OpenOrReplace
		if s.o.ReadOnly {
			open = flat.Open
		}
		c, err := open(filepath.Join(s.o.Place.Index, vectorsFolder), d.Dimension, d.ID, &flat.Options{ReadOnly: s.o.ReadOnly})
		if err == nil {
			x.vectors, x.closers = c, append(x.closers, c.Close)
			return
		}
		if !errors.Is(err, fs.ErrNotExist) {
			s.o.Logger.Warn("opening the vectors of tools", "error", err)
		}
	}
	c, _ := lru.New[store.Key, []float32](maxMemoryVectors) // the size is positive
	x.vectors = &memoryVectors{c}
}

// memoryVectors is a cache in memory.
type memoryVectors struct {
	known *lru.Cache[store.Key, []float32]
}

// Get implements legs.Cache.
func (v *memoryVectors) Get(keys [][32]byte) ([][]float32, error) {
	vectors := make([][]float32, len(keys))
	for i, k := range keys {
		vectors[i], _ = v.known.Get(k)
	}
	return vectors, nil
}

// Put implements legs.Cache.
func (v *memoryVectors) Put(keys [][32]byte, vectors [][]float32) error {
	for i, k := range keys {
		v.known.Add(k, vectors[i])
	}
	return nil
}
