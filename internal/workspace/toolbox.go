package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cairn/internal/catalog"
	"cairn/internal/kv"
	"cairn/internal/toolsearch"
	"cairn/internal/usage"
	"cairn/models"
)

// What a folder knows about tools lies beside the index and survives its
// rebuild: neither can be made again from the documents.
const (
	catalogFile = "catalog.db"
	usageFile   = "usage.db"
	journalFile = "usage.log" // what was learnt since usage.db was written
)

// Toolbox is what a folder knows about tools: their catalogue, and how they
// and the documents are used together. Any number of processes hold one
// open at the same time, whoever owns the index: each opens the files for
// writing only while it writes. It is safe for concurrent use.
type Toolbox struct {
	Catalog *catalog.Catalog
	Usage   *usage.Store

	files []*sharedFile
	// newVectors makes the cache of vectors of tools and intents.
	newVectors func(models.Description) toolsearch.VectorCache
	// keywords is where the words of a large catalogue are kept; "" keeps them in memory.
	keywords string
	prepare  func() error // makes the folder of keywords
	index    toolIndex
}

// OpenToolbox opens the toolbox of a folder. It creates nothing until
// something is written.
func OpenToolbox(sel Selection, c UsageConfig) (*Toolbox, error) {
	w := &Workspace{selection: sel, dir: filepath.Join(sel.Root, ".cairn", "index")}
	catalogDB := &sharedFile{path: filepath.Join(w.dir, catalogFile), prepare: w.prepare}
	usage, usageDB, err := openUsage(w.dir, w.prepare, c)
	t := &Toolbox{Usage: usage, files: []*sharedFile{catalogDB, usageDB}, keywords: filepath.Join(w.dir, toolKeywordsFolder), prepare: w.prepare}
	t.newVectors = func(d models.Description) toolsearch.VectorCache {
		return newToolVectors(filepath.Join(w.dir, toolVectorsFile), d, w.prepare)
	}
	if err == nil {
		t.Catalog, err = catalog.Open(catalogDB)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Close closes the files. What was written is kept already.
func (t *Toolbox) Close() error {
	errs := []error{t.index.close()}
	if t.Usage != nil {
		errs = append(errs, t.Usage.Close())
	}
	for _, f := range t.files {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}

// Learn resolves the names of tools in the traces to ids of the catalogue and
// learns them, all or none. Names the catalogue does not know, or not one tool
// of, are learnt as they are and returned, each once, in order of appearance.
func (t *Toolbox) Learn(ctx context.Context, traces ...usage.Trace) (unknown []string, err error) {
	ids := map[string]string{}
	resolved := make([]usage.Trace, len(traces))
	for i, trace := range traces {
		resolved[i] = trace
		resolved[i].Calls = make([]usage.Call, len(trace.Calls))
		for k, call := range trace.Calls {
			id, known := ids[call.Tool]
			if !known {
				var found bool
				if id, found, err = t.Resolve(call.Tool); err != nil {
					return nil, err
				}
				if ids[call.Tool] = id; !found {
					unknown = append(unknown, call.Tool)
				}
			}
			resolved[i].Calls[k] = usage.Call{Tool: id, Success: call.Success}
		}
	}
	return unknown, t.Usage.Learn(ctx, resolved...)
}

// Resolve turns a tool's name into its id. Documents are ids already; what is not
// the name of one tool is returned as it is, and not found.
func (t *Toolbox) Resolve(name string) (id string, found bool, err error) {
	if strings.HasPrefix(name, usage.DocumentPrefix) {
		return name, true, nil
	}
	tool, err := t.Catalog.Lookup(name)
	_, missing := errors.AsType[*catalog.UnknownError](err)
	_, several := errors.AsType[*catalog.AmbiguousError](err)
	switch {
	case missing || several:
		return name, false, nil
	case err != nil:
		return "", false, err
	}
	return tool.ID, true, nil
}

// writeWait is how long a write waits for that of another process. A large
// import takes seconds.
const writeWait = 20 * time.Second

// sharedFile is a file of buckets that many processes write, one at a time.
type sharedFile struct {
	path    string
	prepare func() error // makes the folder

	writing sync.Mutex // one writer in this process; kv sees to the others

	mu     sync.Mutex
	reader *kv.DB // nil until the file exists
	closed bool
}

// View implements catalog.DB and usage.DB: it calls fn unless there is no file yet.
func (f *sharedFile) View(fn func(*kv.Tx) error) error {
	reader, err := f.open()
	if reader == nil || err != nil {
		return err
	}
	return reader.View(fn)
}

func (f *sharedFile) open() (*kv.DB, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, kv.ErrClosed
	}
	if f.reader != nil {
		return f.reader, nil
	}
	// An empty file is one that another process is about to fill.
	if info, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, nil
	}
	reader, err := kv.Open(f.path, &kv.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	f.reader = reader
	return reader, nil
}

// Update implements catalog.DB and usage.DB.
func (f *sharedFile) Update(fn func(*kv.Tx) error) (err error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.prepare(); err != nil {
		return err
	}
	db, err := kv.Open(f.path, &kv.Options{Timeout: writeWait})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := db.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("closing after a write: %w", closeErr)
		}
	}()
	return db.Update(fn)
}

// sibling is a path beside the file.
func (f *sharedFile) sibling(name string) string { return filepath.Join(filepath.Dir(f.path), name) }

func (f *sharedFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.reader == nil {
		return nil
	}
	err := f.reader.Close()
	f.reader = nil
	return err
}
