package toolbox

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"cairn/internal/atomicfile"
	"cairn/internal/query"
	"cairn/internal/store"
	"cairn/internal/store/keyword"
	"cairn/internal/toolsearch"
)

// keywordsFolder has the keyword index of a large catalogue, in a folder named by the
// digest of its contents. A folder with that name is complete and read-only: it is built
// as buildFolder and renamed, so that no process reads what a killed process left.
const (
	keywordsFolder = "tool-keywords"
	buildFolder    = "new"
)

// KeywordsDir is the folder of the keyword index below that of an index.
func KeywordsDir(dir string) string { return filepath.Join(dir, keywordsFolder) }

// minStored is the least number of tools for which the index is stored. Indexing fewer
// in memory takes less time than opening files.
const minStored = 2000

// toolKeywords is the keyword index of a toolbox. It implements
// toolsearch.PersistentKeyword. Where the folder cannot be written it is in memory.
type toolKeywords struct {
	dir   string // "" is memory
	least int    // tools, see minStored

	mu     sync.RWMutex   // held for writing to change index
	index  *keyword.Index // nil before the first Begin, and after Close
	stored string         // folder of index; "" in memory

	// The fields below belong to the update; there is one at a time.
	building *keyword.Index // nil unless an index is being built
	target   string
	failed   bool // the folder cannot be written: memory is used from now on
	filled   bool // index is in memory and complete
}

var _ toolsearch.PersistentKeyword = (*toolKeywords)(nil)

func newToolKeywords(dir string) *toolKeywords {
	return &toolKeywords{dir: dir, failed: dir == ""}
}

// Begin implements toolsearch.PersistentKeyword.
func (k *toolKeywords) Begin(whole [32]byte, tools int) (toolsearch.Stored, error) {
	k.abandon()
	if k.failed || tools < k.least {
		if k.filled {
			return toolsearch.StoredLast, nil
		}
		x, err := keyword.Memory()
		if err != nil {
			return 0, err
		}
		return toolsearch.StoredNothing, k.use(x, "")
	}
	k.filled = false
	k.target = filepath.Join(k.dir, hex.EncodeToString(whole[:16]))
	switch x, err := keyword.Open(k.target, &keyword.Options{ReadOnly: true}); {
	case err == nil:
		return toolsearch.StoredAll, k.use(x, k.target)
	case errors.Is(err, keyword.ErrCorrupt), errors.Is(err, keyword.ErrFormat):
		_ = os.RemoveAll(k.target) // otherwise the rename fails, which says so
	}
	if err := k.build(); err != nil {
		k.abandon()
		k.failed = true
		return k.Begin(whole, tools)
	}
	return toolsearch.StoredNothing, nil
}

// build starts an index on disk.
func (k *toolKeywords) build() error {
	if err := os.RemoveAll(k.temp()); err != nil { // of a process that was killed
		return err
	}
	if err := os.MkdirAll(k.temp(), 0o755); err != nil {
		return err
	}
	var err error
	k.building, err = keyword.Open(k.temp(), nil)
	return err
}

func (k *toolKeywords) temp() string { return filepath.Join(k.dir, buildFolder) }

// abandon removes an unfinished index.
func (k *toolKeywords) abandon() {
	if k.building != nil {
		_ = k.building.Close() // it is removed
		_ = os.RemoveAll(k.temp())
	}
	k.building = nil
}

// use makes x the index, and closes the previous one when its last search has ended.
func (k *toolKeywords) use(x *keyword.Index, folder string) error {
	k.mu.Lock()
	old := k.index
	k.index, k.stored = x, folder
	k.mu.Unlock()
	if old == nil {
		return nil
	}
	return old.Close()
}

// Update implements store.Keyword.
func (k *toolKeywords) Update(ctx context.Context, entries []store.KeywordEntry, stale []string) error {
	if k.building == nil {
		return k.index.Update(ctx, entries, stale)
	}
	err := k.building.Update(ctx, entries, stale)
	if err != nil && ctx.Err() == nil {
		k.failed = true
	}
	return err
}

// Finish implements toolsearch.PersistentKeyword.
func (k *toolKeywords) Finish(ctx context.Context) error {
	if k.building == nil {
		k.filled = true
		return nil
	}
	err := k.rename(ctx)
	if err != nil {
		k.failed = ctx.Err() == nil
		k.abandon()
		return err
	}
	k.sweep()
	return nil
}

// rename completes the index that is being built and opens it under its name.
func (k *toolKeywords) rename(ctx context.Context) error {
	if err := k.building.Optimize(ctx); err != nil {
		return err
	}
	err := k.building.Close()
	k.building = nil
	if err != nil {
		return err
	}
	if err := atomicfile.SyncDir(k.temp()); err != nil {
		return err
	}
	if err := os.Rename(k.temp(), k.target); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(k.dir); err != nil {
		return err
	}
	x, err := keyword.Open(k.target, &keyword.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	return k.use(x, k.target)
}

// sweep removes the indexes of earlier catalogues.
func (k *toolKeywords) sweep() {
	entries, _ := os.ReadDir(k.dir) // after an error they stay until the next sweep
	for _, e := range entries {
		if path := filepath.Join(k.dir, e.Name()); path != k.target {
			_ = os.RemoveAll(path)
		}
	}
}

// Search implements store.Keyword.
func (k *toolKeywords) Search(ctx context.Context, q query.Query, n int, f store.Filter) ([]store.Hit, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.index == nil {
		return nil, keyword.ErrClosed
	}
	hits, err := k.index.Search(ctx, q, n, f)
	if k.stored != "" && errors.Is(err, keyword.ErrCorrupt) {
		_ = os.RemoveAll(k.stored) // the next process builds it again
	}
	return hits, err
}

// Admits implements store.Keyword.
func (k *toolKeywords) Admits(ctx context.Context, q query.Query, chunks []string) ([]bool, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.index == nil {
		return nil, keyword.ErrClosed
	}
	return k.index.Admits(ctx, q, chunks)
}

// Count implements store.Keyword.
func (k *toolKeywords) Count() (int, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.index == nil {
		return 0, keyword.ErrClosed
	}
	return k.index.Count()
}

// Close implements store.Keyword.
func (k *toolKeywords) Close() error {
	k.abandon()
	return k.use(nil, "")
}
