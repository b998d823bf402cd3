package toolbox

import (
	"log/slog"
	"path/filepath"

	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/internal/store"
	"cairn/internal/store/flat"
	"cairn/internal/toolbox/toolsearch"
	"cairn/models"
)

// vectorsFolder contains the vectors of tools and intents by the hash of their text.
const vectorsFolder = "tool-vectors"

// maxMemoryVectors bounds a cache of vectors in memory to about 30 MB.
const maxMemoryVectors = 20_000

// openVectors opens the cache of a model's vectors: in the database, in a file, or, if that
// fails, in memory.
func (s *service) openVectors(d models.Description) (cache toolsearch.VectorCache, closeCache func() error) {
	if s.database != nil {
		return s.database.Vectors(d.ID, d.Dimension), nil
	}
	if s.place.Index != "" {
		c, err := openFile(s.place.Index, d)
		if err == nil {
			return &fileVectors{c, s.o.Logger}, c.Close
		}
		s.o.Logger.Warn("opening the vectors of tools", "error", err)
	}
	c, _ := lru.New[store.Key, []float32](maxMemoryVectors) // the size is positive
	return &memoryVectors{c}, nil
}

// openFile opens the cache in dir. An empty cache replaces one that is damaged or of another
// model.
func openFile(dir string, d models.Description) (*flat.Store, error) {
	return flat.OpenOrReplace(filepath.Join(dir, vectorsFolder), d.Dimension, d.ID, nil)
}

// fileVectors is a cache in a file. Texts whose vectors cannot be read are embedded again.
type fileVectors struct {
	cache *flat.Store
	log   *slog.Logger
}

// Get implements toolsearch.VectorCache.
func (v *fileVectors) Get(keys [][32]byte) ([][]float32, error) {
	found, err := v.cache.Get(keys)
	if err != nil {
		v.log.Warn("reading vectors of tools", "error", err)
		return make([][]float32, len(keys)), nil
	}
	return found, nil
}

// Put implements toolsearch.VectorCache.
func (v *fileVectors) Put(keys [][32]byte, vectors [][]float32) error {
	if err := v.cache.Put(keys, vectors); err != nil {
		v.log.Warn("keeping vectors of tools", "error", err)
	}
	return nil
}

// memoryVectors is a cache in memory.
type memoryVectors struct {
	known *lru.Cache[store.Key, []float32]
}

// Get implements toolsearch.VectorCache.
func (v *memoryVectors) Get(keys [][32]byte) ([][]float32, error) {
	vectors := make([][]float32, len(keys))
	for i, k := range keys {
		vectors[i], _ = v.known.Get(k)
	}
	return vectors, nil
}

// Put implements toolsearch.VectorCache.
func (v *memoryVectors) Put(keys [][32]byte, vectors [][]float32) error {
	for i, k := range keys {
		v.known.Add(k, vectors[i])
	}
	return nil
}
