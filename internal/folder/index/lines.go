package index

import (
	"context"
	"errors"

	"cairn/internal/folder/scan"
	"cairn/internal/store/docs"
	"cairn/internal/text/walk"
	"cairn/internal/text/watch"
)

// Candidates returns the files that a scan for lines has to read. If the owner watches the
// folder, the documents and the unhandled changes suffice; otherwise Candidates walks the
// folder.
func (x *Index) Candidates(ctx context.Context, r scan.Request) (c *scan.Candidates, err error) {
	tree, err := walk.Open(x.options.Selection.Roots()...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	changes, watched := x.unhandled() // before the documents, which then have all others
	complete := x.complete.Load()
	known, err := x.knownFiles()
	if err != nil { // then every file is a candidate
		x.options.Logger.Debug("reading the n-grams of the files", "error", err)
	}
	if known != nil && watched && complete && !changes.All {
		c, err = scan.SelectWatched(ctx, tree, x.options.Config.Walk(), known, changes.Paths, r)
	} else {
		c, err = scan.Select(ctx, tree, x.options.Config.Walk(), known, r)
	}
	if c != nil {
		c.Rules = x.options.Config.Masks().Rules()
	}
	return c, err
}

// knownFiles returns the states of the files in the documents, nil without an index. It opens
// only the documents if the process has not opened the index, because a command scans once.
func (x *Index) knownFiles() (known *scan.Known, err error) {
	o := x.options
	x.mu.RLock()
	alone := !x.opened && !o.Write && o.Remote == nil
	x.mu.RUnlock()
	s := &Stores{own: true}
	if alone {
		defer func() { err = errors.Join(err, s.Close()) }()
		err = s.openDocuments(o.Dir, o.Config.Masks(), o.Description)
	} else if s, err = x.use(); err == nil {
		defer x.mu.RUnlock()
	}
	if err != nil || s == nil || !s.own {
		return nil, err
	}
	return x.known.get(s.Docs, func(r *docs.Reader) (*scan.Known, error) { return scan.Record(r, x.known.last, !alone) })
}

// unhandled returns the changes that no completed call of watcher.take has processed. ok is
// false if they are not known, or the folder is not watched.
func (x *Index) unhandled() (b watch.Batch, ok bool) {
	x.runs.Lock()
	w := x.watcher
	x.runs.Unlock()
	if w == nil {
		return b, false
	}
	events := w.events.Load()
	if events == nil {
		return b, false
	}
	return events.Unhandled()
}
