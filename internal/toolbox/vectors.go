package toolbox

import (
	"errors"
	"io/fs"
	"path/filepath"

	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/internal/store"
	"cairn/internal/store/flat"
	"cairn/models"
)

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
