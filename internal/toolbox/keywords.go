package toolbox

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"cairn/internal/base/atomicfile"
	"cairn/internal/store"
	"cairn/internal/store/keyword"
	"cairn/internal/text/query"
	"cairn/internal/toolbox/toolsearch"
)

// keywordsFolder contains the keyword index of a large catalogue in indexFolder, and the
// digest of its contents in contentsFile. contentsFile exists only while the index is
// complete, so that no process uses the incomplete index of a killed process.
const (
	keywordsFolder = "tool-keywords"
	indexFolder    = "index"
	contentsFile   = "contents"
)

// KeywordsDir returns the folder of the keyword index of tools below dir, the folder of an
// index.
func KeywordsDir(dir string) string { return filepath.Join(dir, keywordsFolder) }

// minStored is the minimum number of tools for which the index is stored. For fewer tools,
// indexing in memory takes less time than opening files.
const minStored = 2000

// toolKeywords is the keyword index of a toolbox. It implements
// toolsearch.PersistentKeyword. If the folder is not writable, the index is in memory.
type toolKeywords struct {
	dir   string // "" means memory
	least int    // see minStored

	mu     sync.RWMutex   // locked for writing to change index
	index  *keyword.Index // nil before the first Begin, and after Close
	stored bool           // index is in dir

	// The fields below belong to the update. There is one update at a time.
	contents string // the digest passed to Begin
	complete bool   // index has these contents
	fresh    bool   // index was empty at Begin
	failed   bool   // the folder is not writable: use memory from now on
}

var _ toolsearch.PersistentKeyword = (*toolKeywords)(nil)

func newToolKeywords(dir string) *toolKeywords {
	return &toolKeywords{dir: dir, failed: dir == ""}
}

// Begin implements toolsearch.PersistentKeyword.
func (k *toolKeywords) Begin(whole [32]byte, tools int) (toolsearch.Stored, error) {
	contents, stored := hex.EncodeToString(whole[:]), !k.failed && tools >= k.least
	has := toolsearch.StoredNothing
	if k.complete && k.stored == stored {
		if has = toolsearch.StoredLast; k.contents == contents {
			return toolsearch.StoredAll, nil
		}
	}
	k.contents, k.complete = contents, false
	var err error
	switch {
	case !stored && has == toolsearch.StoredLast, has == toolsearch.StoredLast && k.unmark() == nil:
		k.fresh = false
		return has, nil
	case !stored:
		err = k.use(false, keyword.Memory)
	case k.open(tools):
		k.complete = true
		return toolsearch.StoredAll, nil
	default:
		k.fresh = true
		err = k.use(true, k.create)
	}
	if err != nil && stored {
		k.failed = true
		return k.Begin(whole, tools)
	}
	return toolsearch.StoredNothing, err
}

// open opens the index of an earlier process, if it has the contents passed to Begin. It
// compares the number of tools to detect an index that was removed in part.
func (k *toolKeywords) open(tools int) bool {
	contents, err := os.ReadFile(filepath.Join(k.dir, contentsFile))
	if err != nil || string(contents) != k.contents {
		return false
	}
	if k.use(true, func() (*keyword.Index, error) { return keyword.Open(filepath.Join(k.dir, indexFolder), nil) }) != nil {
		return false
	}
	n, err := k.index.Count()
	return err == nil && n == tools
}

// create makes an empty index in the folder.
func (k *toolKeywords) create() (*keyword.Index, error) {
	if err := os.MkdirAll(k.dir, 0o755); err != nil { // a file of this name exists
		return nil, err
	}
	if err := os.RemoveAll(k.dir); err != nil {
		return nil, err
	}
	dir := filepath.Join(k.dir, indexFolder)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return keyword.Open(dir, nil)
}

// unmark removes contentsFile before the stored index changes.
func (k *toolKeywords) unmark() error {
	if err := os.Remove(filepath.Join(k.dir, contentsFile)); err != nil {
		return err
	}
	return atomicfile.SyncDir(k.dir)
}

// use waits for the searches, closes the index, and replaces it with the result of open.
func (k *toolKeywords) use(stored bool, open func() (*keyword.Index, error)) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.index != nil {
		_ = k.index.Close() // the new index replaces its data
	}
	k.index, err = open()
	k.stored = stored && err == nil
	return err
}

// Update implements toolsearch.Keyword.
func (k *toolKeywords) Update(ctx context.Context, entries []store.KeywordEntry, stale []string) error {
	err := k.index.Update(ctx, entries, stale)
	k.failed = k.failed || k.stored && err != nil && ctx.Err() == nil
	return err
}

// Finish implements toolsearch.PersistentKeyword.
func (k *toolKeywords) Finish(ctx context.Context) error {
	if k.stored {
		var err error
		if k.fresh {
			err = k.index.Optimize(ctx)
		}
		if err == nil {
			err = atomicfile.Write(filepath.Join(k.dir, contentsFile), []byte(k.contents), 0o600)
		}
		if err != nil {
			k.failed = ctx.Err() == nil
			return err
		}
	}
	k.complete = true
	return nil
}

// Search implements toolsearch.Keyword.
func (k *toolKeywords) Search(ctx context.Context, q query.Query, n int, f store.Filter) ([]store.Hit, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.index == nil {
		return nil, keyword.ErrClosed
	}
	hits, err := k.index.Search(ctx, q, n, f)
	if k.stored && errors.Is(err, keyword.ErrCorrupt) {
		_ = os.RemoveAll(k.dir) // the next process rebuilds it
	}
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
