// Package keyword is the keyword index, a store.Keyword on disk. It does not store
// texts.
//
// File analyze splits documentation and code into terms; entry and update write them;
// query, search, phrase, filter and fuzzy find chunks; score ranks them by BM25 with
// weighted headings. The storage engine is scorch, from Bleve, with segments,
// dictionaries, postings, merging and crash safety. The scoring is cairn's own, because
// Bleve's "bm25" (version 2.6.1) takes the square root of frequencies, multiplies by the
// inverse document frequency twice, and computes the average length as distinct terms
// per document.
package keyword

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
)

// format is the version of the analysis and the layout. It changes whenever an index
// that was written by an earlier version would give other results.
const format = "4"

// stateKey in scorch and stateFile in the folder hold "FORMAT GENERATION". Each update
// increments the generation, first in scorch. If scorch cannot read its state, it reverts
// to an older one or starts empty. checkState detects this by a higher generation in
// stateFile.
var stateKey = []byte("cairn.text.state")

const stateFile = "state"

// Errors that Open returns, wrapped with the folder's name.
var (
	// ErrLocked means that another process writes to the index.
	ErrLocked = errors.New("another process holds the keyword index")
	// ErrCorrupt means that the folder cannot be read as an index. The caller should
	// remove the folder and rebuild the index.
	ErrCorrupt = errors.New("keyword index is damaged")
	// ErrFormat means that the folder was written by a version of cairn with other terms
	// or another layout. The caller should remove the folder and rebuild the index.
	ErrFormat = errors.New("keyword index has another format")
	// ErrClosed means that the index was used after Close.
	ErrClosed = errors.New("keyword index is closed")
)

// Options configures Open. Nil means the defaults.
type Options struct {
	// ReadOnly opens an existing index for searches only. Several processes may do so at
	// the same time. They find the last commit, also while another process has the index
	// open for writing.
	ReadOnly bool
}

// Index is a keyword index. It is safe for concurrent use. Updates wait for each other;
// searches do not wait.
type Index struct {
	dir      string // empty for an index in memory
	readOnly bool
	scorch   *scorch.Scorch
	queue    *index.AnalysisQueue

	write      sync.Mutex // held by Update and Optimize
	generation uint64     // guarded by write

	open    sync.RWMutex // held for reading while scorch is in use
	done    bool         // the index is closed; guarded by open
	reading string       // the folder of openCommit, which Close removes; "" for none

	checked checkedSegments
	lengths lengthCache
	decoded *decodedCache
}

// Open opens the index in folder dir. It creates a missing index unless o.ReadOnly is
// set, in which case the error wraps fs.ErrNotExist. Other errors may wrap ErrLocked,
// ErrCorrupt or ErrFormat.
func Open(dir string, o *Options) (*Index, error) {
	o = cmp.Or(o, &Options{})
	x, err := openCommit(dir, o.ReadOnly)
	if err != nil {
		return nil, fmt.Errorf("opening keyword index %s: %w", dir, err)
	}
	if err := x.checkState(); err != nil {
		x.Close()
		return nil, fmt.Errorf("opening keyword index %s: %w", dir, err)
	}
	x.dir = dir
	go func() { // so that the first search need not wait for it
		x.open.RLock()
		defer x.open.RUnlock()
		_ = x.checkSegments() // a search finds the same
	}()
	return x, nil
}

// Memory returns an empty index without a folder, for tests.
func Memory() (*Index, error) {
	return open("", false)
}

// open starts scorch. Its errors other than the lock, permissions and a full disk mean
// that the folder is damaged. Its decoders may panic on damaged bytes.
func open(dir string, readOnly bool) (x *Index, err error) {
	if err := checkRoot(dir); err != nil {
		return nil, err
	}
	queue := index.NewAnalysisQueue(runtime.GOMAXPROCS(0))
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // for truncated segments
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, r)
		}
		if err != nil {
			queue.Close()
		}
	}()
	config := map[string]any{
		"path":         dir,
		"read_only":    readOnly,
		"bolt_timeout": "1s", // for another process to release the folder
		// A query looks up its terms in each segment, so fewer segments are faster.
		"scorchMergePlanOptions": map[string]any{
			"MaxSegmentsPerTier":   4,
			"SegmentsPerMergeTask": 8,
		},
	}
	idx, err := scorch.NewScorch(scorch.Name, config, queue)
	if err != nil {
		return nil, err // unreachable: the configuration above is valid
	}
	if err := idx.Open(); err != nil {
		switch {
		case err.Error() == "timeout": // bbolt's ErrTimeout; only package kv imports bbolt
			return nil, ErrLocked
		case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOSPC):
			return nil, err
		}
		return nil, fmt.Errorf("%w: %v", ErrCorrupt, err)
	}
	return &Index{dir: dir, readOnly: readOnly, scorch: idx.(*scorch.Scorch), queue: queue, decoded: newDecodedCache()}, nil
}

// checkState checks the format and the generation, and writes them to a new index.
func (x *Index) checkState() error {
	snap, err := x.snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	inside, err := snap.GetInternal(stateKey)
	if err != nil {
		return fmt.Errorf("%w: %v", ErrCorrupt, err)
	}
	inFile, err := os.ReadFile(filepath.Join(x.dir, stateFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(inside) == 0 && len(inFile) == 0 { // new, or its first Open was interrupted
		if x.readOnly {
			return nil
		}
		if err := x.scorch.SetInternal(stateKey, x.state()); err != nil {
			return err
		}
		return x.writeState()
	}

	var got string
	var ahead uint64
	if len(inside) > 0 {
		if _, err := fmt.Sscan(string(inside), &got, &x.generation); err != nil {
			return fmt.Errorf("%w: state %q", ErrCorrupt, inside)
		}
		if got != format {
			return fmt.Errorf("%w: %q, want %q", ErrFormat, got, format)
		}
	}
	if len(inFile) == 0 {
		return nil // the write was interrupted; the next update writes the file
	}
	if _, err := fmt.Sscan(string(inFile), &got, &ahead); err != nil || ahead > x.generation || len(inside) == 0 {
		return fmt.Errorf("%w: at %q, want %q", ErrCorrupt, inside, inFile)
	}
	return nil
}

func (x *Index) state() []byte { return fmt.Appendf(nil, "%s %d", format, x.generation) }

// writeState records the generation, which scorch has made durable.
func (x *Index) writeState() error {
	if x.dir == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(x.dir, stateFile), x.state(), 0o600)
}

// Close waits for running calls, stops merging and releases the folder. A
// second Close does nothing.
func (x *Index) Close() error {
	x.open.Lock()
	defer x.open.Unlock()
	if x.done {
		return nil
	}
	x.done = true
	err := x.scorch.Close()
	x.queue.Close()
	if x.reading != "" {
		err = errors.Join(err, os.RemoveAll(x.reading))
	}
	if err != nil {
		return fmt.Errorf("closing keyword index %s: %w", x.dir, err)
	}
	return nil
}

// Count returns the number of chunks in the index.
func (x *Index) Count() (int, error) {
	x.open.RLock()
	defer x.open.RUnlock()
	snap, err := x.snapshot()
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	n, err := snap.DocCount()
	return int(n), err
}

// Position implements store.Keyword: it is the generation.
func (x *Index) Position() uint64 {
	x.write.Lock()
	defer x.write.Unlock()
	return x.generation
}

// AverageLength returns the average number of words per chunk, at least 1. It is avg in
// the formula of score.go.
func (x *Index) AverageLength() (avg float64, err error) {
	err = x.read(func(snap *scorch.IndexSnapshot) error {
		_, avg, err = x.lengths.of(snap)
		return err
	})
	return avg, err
}

// snapshot returns the current state. The caller must hold x.open and close the snapshot.
func (x *Index) snapshot() (*scorch.IndexSnapshot, error) {
	if x.done {
		return nil, ErrClosed
	}
	r, err := x.scorch.Reader()
	if err != nil {
		return nil, err
	}
	return r.(*scorch.IndexSnapshot), nil
}
