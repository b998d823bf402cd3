package benchmarks

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"cairn/internal/store/flat"
	"cairn/models"
)

// cache holds the embeddings of a model for several runs. One run at a time uses it.
type cache struct {
	*flat.Store
	lock *flock.Flock
}

// openCache opens the cache of a model in folder. It fails if another run has the cache open.
// It replaces a cache that is damaged or of another format.
func openCache(folder string, d models.Description) (*cache, error) {
	dir := filepath.Join(folder, url.PathEscape(d.ID))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	c := &cache{lock: flock.New(filepath.Join(dir, "lock"))}
	if locked, err := c.lock.TryLock(); err != nil {
		return nil, err
	} else if !locked {
		return nil, errors.Join(fmt.Errorf("another run has the cache %s open: wait for it, or name another folder with --cache", folder), c.lock.Close())
	}
	var err error
	if c.Store, err = flat.OpenOrReplace(dir, d.Dimension, d.ID, &flat.Options{MaxCached: 4 << 20}); err != nil {
		return nil, errors.Join(err, c.lock.Close())
	}
	return c, nil
}

// Close closes the cache.
func (c *cache) Close() error { return errors.Join(c.Store.Close(), c.lock.Close()) }
