// Package toolbox opens what a folder knows about tools: their catalogue, how they
// are used, and the index that finds them. It ranks nothing: see toolsearch.
package toolbox

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"cairn/internal/catalog"
	"cairn/internal/config"
	"cairn/internal/kv"
	"cairn/internal/owner"
	"cairn/internal/records"
	"cairn/internal/toolsearch"
	"cairn/internal/usage"
	"cairn/models"
)

// What a folder knows about tools lies beside the index and survives its
// rebuild: neither can be made again from the documents.
const (
	catalogFile = "catalog.db"
	usageFile   = "usage.db"
	journalFile = "usage.log" // of earlier versions
)

// ErrClosed is returned by every use of a Toolbox after Close.
var ErrClosed = errors.New("the toolbox is closed")

// Toolbox is what a folder knows about tools: their catalogue, and how they
// and the documents are used together. Any number of processes hold one
// open at the same time, whoever owns the index: each opens the files for
// writing only while it writes. It is safe for concurrent use.
type Toolbox struct {
	Catalog *catalog.Catalog
	Usage   *usage.Store

	files []io.Closer
	// newVectors makes the cache of vectors of tools and intents.
	newVectors  func(models.Description) toolsearch.VectorCache
	keywordsDir string       // keeps the words of a large catalogue; "" is memory
	prepare     func() error // makes the folder of keywordsDir
	index       toolIndex
}

// Open opens the toolbox of a folder. It creates nothing until
// something is written.
func Open(sel config.Selection, c config.Usage) (*Toolbox, error) {
	dir, prepare := owner.IndexDir(sel.Root), func() error { return owner.MakeIndexDir(sel.Root) }
	catalogDB := kv.NewShared(filepath.Join(dir, catalogFile), prepare)
	learnt, usageDB, err := OpenUsage(dir, prepare, c)
	t := &Toolbox{Usage: learnt, files: []io.Closer{catalogDB, usageDB}, keywordsDir: KeywordsDir(dir), prepare: prepare}
	t.newVectors = func(d models.Description) toolsearch.VectorCache {
		return newToolVectors(filepath.Join(dir, toolVectorsFile), d, prepare)
	}
	if err == nil {
		t.Catalog, err = catalog.Open(records.NewFile(catalogDB, catalog.Buckets()...))
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// KeywordsDir is where the words of a large catalogue are kept in the folder of
// an index.
func KeywordsDir(dir string) string { return filepath.Join(dir, toolKeywordsFolder) }

// OpenUsage opens what is used together in the folder dir of an index, and the
// file of it, which the caller closes after the store.
func OpenUsage(dir string, prepare func() error, c config.Usage) (*usage.Store, io.Closer, error) {
	db := kv.NewShared(filepath.Join(dir, usageFile), prepare)
	s, err := usage.Open(records.NewFile(db, usage.Buckets()...), &usage.Options{HalfLife: c.HalfLife()})
	if err == nil {
		err = s.FoldJournal(filepath.Join(dir, journalFile))
	}
	return s, db, err
}

// Close closes the files. What was written is kept already.
func (t *Toolbox) Close() error {
	errs := []error{t.index.close()}
	for _, c := range t.files {
		errs = append(errs, c.Close())
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
