package toolbox

import (
	"log/slog"
	"path/filepath"

	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/internal/owner"
	"cairn/internal/store/vectorcache"
	"cairn/internal/toolsearch"
	"cairn/models"
)

// vectorsFile keeps the vectors of tools and intents, by model and text.
const vectorsFile = "tool-embeddings"

// maxMemoryVectors bounds a cache of vectors in memory to some 30 MB.
const maxMemoryVectors = 20_000

// openVectors opens the cache of a model's vectors: in the database, in a file of a
// folder that this process owns, or else in memory.
func (s *service) openVectors(d models.Description) (cache toolsearch.VectorCache, closeCache func() error) {
	if s.database != nil {
		return s.database.Vectors(d.ID, d.Dimension), nil
	}
	if s.mode == owner.Owned {
		c, err := vectorcache.Open(filepath.Join(s.dir, vectorsFile), d.ID, d.Dimension, nil)
		if err == nil {
			return &fileVectors{c, s.o.Logger}, c.Close
		}
		s.o.Logger.Warn("opening the vectors of tools", "error", err)
	}
	c, _ := lru.New[vectorcache.Key, []float32](maxMemoryVectors) // the size is positive
	return &memoryVectors{c}, nil
}

// fileVectors is a cache in a file: what it cannot read is made again.
type fileVectors struct {
	cache *vectorcache.Cache
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

// memoryVectors lasts as long as the process.
type memoryVectors struct {
	known *lru.Cache[vectorcache.Key, []float32]
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
