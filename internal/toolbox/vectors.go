package toolbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"
	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/internal/store/vectorcache"
	"cairn/models"
)

// toolVectorsFile keeps the vectors of tools and intents, by model and text. It
// lies beside the documents' cache because that one belongs to the index's owner.
const toolVectorsFile = "tool-embeddings"

// toolVectors remembers the vectors of tools and intents on disk, for all
// processes of a folder: each opens the file for the length of one call, alone.
// It is a cache. What it cannot read is made again; what it cannot write, as
// in a folder of somebody else's, is remembered for as long as the process lives.
type toolVectors struct {
	path    string
	model   models.Description
	prepare func() error // makes the folder

	unwritten *lru.Cache[vectorcache.Key, []float32]
}

// rememberedVectors bounds a cache of vectors in memory to some 30 MB.
const rememberedVectors = 20_000

// writeWait bounds the wait for the file, and retryEvery is how often it is tried:
// another process has it open for some milliseconds.
const (
	writeWait  = 20 * time.Second
	retryEvery = 10 * time.Millisecond
)

func newToolVectors(path string, d models.Description, prepare func() error) *toolVectors {
	c, _ := lru.New[vectorcache.Key, []float32](rememberedVectors) // the size is positive
	return &toolVectors{path: path, model: d, prepare: prepare, unwritten: c}
}

// with calls fn with the cache, open for this process alone.
func (v *toolVectors) with(fn func(*vectorcache.Cache) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeWait)
	defer cancel()
	lock := flock.New(v.path + ".lock")
	if _, err := lock.TryLockContext(ctx, retryEvery); err != nil {
		return fmt.Errorf("waiting for the tools' vectors: %w", err)
	}
	defer lock.Unlock()
	c, err := vectorcache.Open(v.path, v.model.ID, v.model.Dimension, nil)
	if err != nil {
		return err
	}
	return errors.Join(fn(c), c.Close())
}

// Get implements toolsearch.VectorCache. It creates nothing.
func (v *toolVectors) Get(keys [][32]byte) ([][]float32, error) {
	vectors := make([][]float32, len(keys))
	if _, err := os.Stat(v.path); !errors.Is(err, fs.ErrNotExist) {
		_ = v.with(func(c *vectorcache.Cache) error {
			found, err := c.Get(keys)
			if err == nil {
				vectors = found
			}
			return err
		})
	}
	for i, k := range keys {
		if vectors[i] == nil {
			vectors[i], _ = v.unwritten.Get(k)
		}
	}
	return vectors, nil
}

// Put implements toolsearch.VectorCache.
func (v *toolVectors) Put(keys [][32]byte, vectors [][]float32) error {
	err := v.prepare()
	if err == nil {
		err = v.with(func(c *vectorcache.Cache) error { return c.Put(keys, vectors) })
	}
	if err != nil {
		for i, k := range keys {
			v.unwritten.Add(k, vectors[i])
		}
	}
	return nil
}
