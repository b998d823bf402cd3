// Package vectorcache remembers on disk the vectors of texts that were embedded
// before, so that moved, copied and restored text costs nothing. It is a cache:
// nothing that it loses or refuses is an error of the index.
//
// It keeps two files, the current generation and the one before. When the
// current one has taken half of the allowed entries the one before is removed,
// the current takes its place and a new one begins. A vector found in the
// generation before is not copied: what is not written again goes.
//
// A file is an append-only log rather than a database because keys are
// hashes: 126,000 values of 1.5 kB in random order cost bbolt a page read, a
// page written and a share of a sync each, here it is one write a batch and no
// sync. After a power failure torn entries fail their checksums and are
// embedded again; the end of the process loses nothing.
package vectorcache

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
)

// DefaultMaxEntries bounds the vectors kept: at 384 dimensions some 400 MB.
const DefaultMaxEntries = 256 << 10

// Options are the knobs of Open. Nil and the zero value mean the defaults.
type Options struct {
	// MaxEntries bounds the vectors kept in both generations together, at
	// least 2. 0 means DefaultMaxEntries.
	MaxEntries int
	// Logger hears of files that were set aside. Nil is silent.
	Logger *slog.Logger
}

// Key is the SHA-256 of the text as it is given to the encoder. The model is
// the cache's own: vectors of two models never mix.
type Key = [sha256.Size]byte

// KeyOf returns the key of text.
func KeyOf(text string) Key { return sha256.Sum256([]byte(text)) }

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("the cache of embeddings is closed")

// Cache is an open cache. It is safe for concurrent use within one process; only
// one process may have it open.
type Cache struct {
	path    string
	model   string
	dim     int
	options Options

	mu       sync.RWMutex
	current  *generation // nil after Close
	previous *generation // nil when there is none
}

// Open opens the cache in the files path and path + ".old", and creates it when
// absent. Files of another model or dimension are replaced. A damaged file is
// renamed to its name with ".damaged", and the cache goes on without it.
func Open(path, modelID string, dim int, o *Options) (*Cache, error) {
	c := &Cache{path: path, model: modelID, dim: dim}
	if o != nil {
		c.options = *o
	}
	if c.options.MaxEntries <= 0 {
		c.options.MaxEntries = DefaultMaxEntries
	}
	if c.options.Logger == nil {
		c.options.Logger = slog.New(slog.DiscardHandler)
	}
	if dim < 1 || dim > maxDimension || len(modelID) > maxModel {
		return nil, fmt.Errorf("opening %s: dimension %d and a model ID of %d bytes, want 1 to %d and at most %d", path, dim, len(modelID), maxDimension, maxModel)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	var err error
	if c.previous, err = c.open(c.old()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("opening %s: %w", c.old(), err)
	}
	if c.current, err = c.open(path); errors.Is(err, fs.ErrNotExist) {
		c.current, err = createGeneration(path, modelID, dim)
	}
	if err != nil {
		if c.previous != nil {
			c.previous.file.Close()
		}
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return c, nil
}

func (c *Cache) old() string { return c.path + ".old" }

// open opens a generation; one that cannot be used is moved out of the way and
// reported as absent.
func (c *Cache) open(path string) (*generation, error) {
	g, err := openGeneration(path, c.model, c.dim)
	var damaged *damagedError
	var foreign *foreignError
	switch {
	case errors.As(err, &foreign):
		c.options.Logger.Info("the cache of embeddings is of another model and begins anew", "path", path, "had", foreign.model)
		err = os.Remove(path)
	case errors.As(err, &damaged):
		c.options.Logger.Warn("the cache of embeddings is damaged and begins anew", "path", path, "reason", damaged.reason, "kept as", path+".damaged")
		err = os.Rename(path, path+".damaged")
	default:
		return g, err
	}
	if err != nil {
		return nil, err
	}
	return nil, fs.ErrNotExist
}

// Get returns the vectors of keys in their order, nil for one that is not
// known. The vectors are the caller's, bit for bit as they were put.
func (c *Cache) Get(keys []Key) ([][]float32, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.current == nil {
		return nil, ErrClosed
	}
	vectors := make([][]float32, len(keys))
	buffer := make([]byte, entrySize(c.dim))
	for i, key := range keys {
		for _, g := range []*generation{c.current, c.previous} {
			if g == nil || vectors[i] != nil {
				continue
			}
			v, err := g.get(key, buffer)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", g.file.Name(), err)
			}
			vectors[i] = v
		}
	}
	return vectors, nil
}

// Put remembers vectors under keys, of which there are as many. Keys already
// there stay as they are. A vector of another dimension or with a number that
// is not finite is an error, and nothing is written.
func (c *Cache) Put(keys []Key, vectors [][]float32) error {
	if len(keys) != len(vectors) {
		return fmt.Errorf("writing %s: %d keys for %d vectors", c.path, len(keys), len(vectors))
	}
	for i, v := range vectors {
		if err := c.check(v); err != nil {
			return fmt.Errorf("writing %s: vector %d: %w", c.path, i, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return ErrClosed
	}
	// Batches are cut so that no generation exceeds its half.
	half := max(1, c.options.MaxEntries/2)
	for len(keys) > 0 {
		if c.current.entries >= half {
			if err := c.turn(); err != nil {
				return fmt.Errorf("writing %s: %w", c.path, err)
			}
		}
		n := min(len(keys), half-c.current.entries)
		if err := c.current.put(keys[:n], vectors[:n]); err != nil {
			return fmt.Errorf("writing %s: %w", c.path, err)
		}
		keys, vectors = keys[n:], vectors[n:]
	}
	return nil
}

func (c *Cache) check(v []float32) error {
	if len(v) != c.dim {
		return fmt.Errorf("dimension %d, want %d", len(v), c.dim)
	}
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("it holds %v", x)
		}
	}
	return nil
}

// turn begins a new generation.
func (c *Cache) turn() error {
	if err := os.Rename(c.path, c.old()); err != nil {
		return err
	}
	next, err := createGeneration(c.path, c.model, c.dim)
	if err != nil {
		return errors.Join(err, os.Rename(c.old(), c.path))
	}
	if c.previous != nil {
		c.previous.file.Close() // it has no name any more: nothing can be lost
	}
	c.previous, c.current = c.current, next
	return nil
}

// Count is the number of vectors held; one that is in both generations counts twice.
func (c *Cache) Count() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n := 0
	for _, g := range []*generation{c.current, c.previous} {
		if g != nil {
			n += g.entries
		}
	}
	return n
}

// Close closes the files. Closing twice is not an error.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return nil
	}
	err := c.current.file.Close()
	if c.previous != nil {
		err = errors.Join(err, c.previous.file.Close())
	}
	c.current, c.previous = nil, nil
	if err != nil {
		return fmt.Errorf("closing %s: %w", c.path, err)
	}
	return nil
}
