package workspace

import (
	"context"
	"errors"

	"cairn/internal/folder/scan"
	"cairn/internal/text/walk"
)

// errNoFolder is returned by Scan of a workspace without files.
var errNoFolder = errors.New("this process answers from a store and has no files to search line by line")

// Scan finds every matching line of the folder's files. It reads the files in this
// process, even if another process owns the index.
func (w *Workspace) Scan(ctx context.Context, r scan.Request) (_ *scan.Answer, err error) {
	if w.options.Stateless {
		return nil, errNoFolder
	}
	if err := w.exists(); err != nil {
		return nil, err
	}
	tree, err := walk.Open(w.selection.Roots()...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	cfg := w.Config()
	return scan.Find(ctx, tree, cfg.Walk(), cfg.Masks(), r)
}
