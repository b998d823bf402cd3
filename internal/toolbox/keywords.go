package toolbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"cairn/internal/store"
	"cairn/internal/store/keyword"
	"cairn/internal/text/query"
)

// keywordsFolder contains the keyword index of a large catalogue.
const keywordsFolder = "tool-keywords"

// KeywordsDir returns the folder of the keyword index of tools below dir, the folder of an
// index.
func KeywordsDir(dir string) string { return filepath.Join(dir, keywordsFolder) }

// minStored is the minimum number of tools for which the index is stored. For fewer tools,
// indexing in memory takes less time than opening files.
const minStored = 2000

// toolKeywords is the keyword index of a toolbox. It implements legs.Keyword. The index is
// in memory until there are many tools, and if the folder is not writable.
type toolKeywords struct {
	dir   string // "" means memory
	least int    // see minStored

	mu     sync.RWMutex   // locked for writing to change the fields below
	index  *keyword.Index // nil before the first use, and after Close
	stored bool           // index is in dir
}

// use opens the index for a number of tools. It reports whether it has created an index in
// the folder.
func (k *toolKeywords) use(tools int) (created bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dir != "" && tools >= k.least && !k.stored {
		x, err := k.open()
		if err == nil {
			if k.index != nil {
				_ = k.index.Close() // the stored index replaces it
			}
			k.index, k.stored = x, true
			n, err := x.Count()
			return n == 0, err
		}
		k.dir = "" // use memory from now on
	}
	if k.index == nil {
		k.index, err = keyword.Memory()
	}
	return false, err
}

// open opens the index in the folder. An empty index replaces one that cannot be opened.
func (k *toolKeywords) open() (*keyword.Index, error) {
	err := os.MkdirAll(k.dir, 0o755)
	if err != nil {
		return nil, err
	}
	x, err := keyword.Open(k.dir, nil)
	if errors.Is(err, keyword.ErrCorrupt) || errors.Is(err, keyword.ErrFormat) {
		if err := os.RemoveAll(k.dir); err != nil {
			return nil, err
		}
		x, err = k.open()
	}
	return x, err
}

// fail replaces an index in the folder that cannot be written by an empty one in memory. It
// reports whether there was one.
func (k *toolKeywords) fail() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.stored
	if was {
		_ = k.index.Close() // the next process opens it again
		k.index, k.stored, k.dir = nil, false, ""
	}
	return was
}

// read calls fn with the index. If that is damaged, read removes the folder, so that the next
// process rebuilds the index.
func (k *toolKeywords) read(fn func(*keyword.Index) error) error {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.index == nil {
		return keyword.ErrClosed
	}
	err := fn(k.index)
	if k.stored && errors.Is(err, keyword.ErrCorrupt) {
		_ = os.RemoveAll(k.dir)
	}
	return err
}

// Chunks implements legs.Keyword.
func (k *toolKeywords) Chunks() (ids []string, err error) {
	err = k.read(func(x *keyword.Index) error {
		ids, err = x.Chunks()
		return err
	})
	return ids, err
}

// Update implements legs.Keyword.
func (k *toolKeywords) Update(ctx context.Context, entries []store.KeywordEntry, stale []string) error {
	return k.read(func(x *keyword.Index) error { return x.Update(ctx, entries, stale) })
}

// Search implements legs.Keyword.
func (k *toolKeywords) Search(ctx context.Context, q query.Query, n int, f store.Filter) (hits []store.Hit, err error) {
	err = k.read(func(x *keyword.Index) error {
		hits, err = x.Search(ctx, q, n, f)
		return err
	})
	return hits, err
}

// Close closes the index.
func (k *toolKeywords) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.index == nil {
		return nil
	}
	err := k.index.Close()
	k.index = nil
	return err
}
