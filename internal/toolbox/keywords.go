package toolbox

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cairn/internal/atomicfile"
	"cairn/internal/query"
	"cairn/internal/store"
	"cairn/internal/store/keyword"
	"cairn/internal/toolsearch"
)

// toolKeywordsFolder holds keyword indexes of the catalogue, each in a folder
// named by the digest of what it holds. One that has its name is complete and is
// never written again: it is made under another name and renamed, so that a
// process which is killed leaves nothing that anybody reads. Any number of
// processes read one.
const toolKeywordsFolder = "tool-keywords"

const (
	// keptTools is from how many tools on the index is kept on disk. Fewer are
	// indexed in memory in less time than a file is opened in.
	keptTools = 2000
	// makingPrefix and donePrefix begin the names of folders that are being made
	// and removed; leftoverAge is when one of them belongs to nobody any more.
	makingPrefix, donePrefix = "new-", "old-"
	leftoverAge              = time.Hour
)

// toolKeywords is the keyword index of a toolbox. It implements toolsearch.Keeper.
// Where the folder cannot be written the index is in memory.
type toolKeywords struct {
	dir     string
	prepare func() error // makes the folder of the index
	least   int          // tools, see keptTools

	mu    sync.RWMutex   // held for writing to change index
	index *keyword.Index // nil before the first Begin, and after Close
	kept  string         // folder of index; "" in memory

	// What follows belongs to whoever updates; there is one at a time.
	making *keyword.Index // nil unless one is being made
	temp   string
	target string
	failed bool // the disk does not serve: memory does, from now on
	filled bool // index is in memory and was Kept
}

var _ toolsearch.Keeper = (*toolKeywords)(nil)

// newToolKeywords keeps in the folder dir; "" keeps in memory.
func newToolKeywords(dir string, prepare func() error) *toolKeywords {
	return &toolKeywords{dir: dir, prepare: prepare, least: keptTools, failed: dir == ""}
}

// Begin implements toolsearch.Keeper.
func (k *toolKeywords) Begin(whole [32]byte, tools int) (toolsearch.Holding, error) {
	k.abandon()
	if k.failed || tools < k.least {
		if k.filled {
			return toolsearch.HoldsLast, nil
		}
		x, err := keyword.Memory()
		if err != nil {
			return 0, err
		}
		return toolsearch.HoldsNothing, k.use(x, "")
	}
	k.filled = false
	k.target = filepath.Join(k.dir, hex.EncodeToString(whole[:16]))
	switch x, err := keyword.Open(k.target, &keyword.Options{ReadOnly: true}); {
	case err == nil:
		return toolsearch.HoldsWhole, k.use(x, k.target)
	case errors.Is(err, keyword.ErrCorrupt), errors.Is(err, keyword.ErrFormat):
		k.remove(k.target)
	}
	if err := k.make(); err != nil {
		k.abandon()
		k.failed = true
		return k.Begin(whole, tools)
	}
	return toolsearch.HoldsNothing, nil
}

// make starts an index on disk.
func (k *toolKeywords) make() error {
	if err := k.prepare(); err != nil {
		return err
	}
	if err := os.MkdirAll(k.dir, 0o755); err != nil {
		return err
	}
	var err error
	if k.temp, err = os.MkdirTemp(k.dir, makingPrefix); err != nil {
		return err
	}
	k.making, err = keyword.Open(k.temp, nil)
	return err
}

// abandon removes what was being made.
func (k *toolKeywords) abandon() {
	if k.making != nil {
		_ = k.making.Close() // it is removed
	}
	if k.temp != "" {
		_ = os.RemoveAll(k.temp)
	}
	k.making, k.temp = nil, ""
}

// use makes x answer, and closes what did before when the last search on it has ended.
func (k *toolKeywords) use(x *keyword.Index, folder string) error {
	k.mu.Lock()
	old := k.index
	k.index, k.kept = x, folder
	k.mu.Unlock()
	if old == nil {
		return nil
	}
	return old.Close()
}

// Update implements store.Keyword.
func (k *toolKeywords) Update(ctx context.Context, entries []store.KeywordEntry, stale []string) error {
	if k.making == nil {
		return k.index.Update(ctx, entries, stale)
	}
	err := k.making.Update(ctx, entries, stale)
	if err != nil && ctx.Err() == nil {
		k.failed = true
	}
	return err
}

// Keep implements toolsearch.Keeper.
func (k *toolKeywords) Keep(ctx context.Context) error {
	if k.making == nil {
		k.filled = true
		return nil
	}
	err := k.finish(ctx)
	if err != nil {
		k.failed = ctx.Err() == nil
		k.abandon()
		return err
	}
	k.sweep()
	return nil
}

func (k *toolKeywords) finish(ctx context.Context) error {
	if err := k.making.Optimize(ctx); err != nil {
		return err
	}
	err := k.making.Close()
	k.making = nil
	if err != nil {
		return err
	}
	if err := atomicfile.SyncDir(k.temp); err != nil {
		return err
	}
	// Another process may have made the same; whose is used does not matter.
	if err := os.Rename(k.temp, k.target); err != nil {
		if _, statErr := os.Stat(k.target); statErr != nil {
			return err
		}
		k.abandon()
	}
	k.temp = ""
	if err := atomicfile.SyncDir(k.dir); err != nil {
		return err
	}
	x, err := keyword.Open(k.target, &keyword.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	return k.use(x, k.target)
}

// sweep removes the other indexes, and what killed processes left. Who has one
// open goes on reading it.
func (k *toolKeywords) sweep() {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(k.dir, e.Name())
		if path == k.target {
			continue
		}
		if strings.HasPrefix(e.Name(), makingPrefix) || strings.HasPrefix(e.Name(), donePrefix) {
			if info, err := e.Info(); err != nil || time.Since(info.ModTime()) < leftoverAge {
				continue
			}
		}
		k.remove(path)
	}
}

// remove takes a folder's name away first, so that nobody opens half of it; where
// the system keeps folders that are in use, it stays whole.
func (k *toolKeywords) remove(path string) {
	gone, err := os.MkdirTemp(k.dir, donePrefix)
	if err != nil {
		return
	}
	_ = os.Rename(path, filepath.Join(gone, "index"))
	_ = os.RemoveAll(gone)
}

// Search implements store.Keyword.
func (k *toolKeywords) Search(ctx context.Context, q query.Query, n int, f store.Filter) ([]store.Hit, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.index == nil {
		return nil, keyword.ErrClosed
	}
	hits, err := k.index.Search(ctx, q, n, f)
	if k.kept != "" && errors.Is(err, keyword.ErrCorrupt) {
		k.remove(k.kept) // the next process makes it anew
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
