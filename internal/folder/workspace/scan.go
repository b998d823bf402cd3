package workspace

import (
	"context"
	"errors"
	"slices"
	"strings"

	"cairn/internal/folder/index"
	"cairn/internal/folder/scan"
	"cairn/internal/store"
	"cairn/internal/text/walk"
)

// errNoFolder is returned by Scan of a workspace without files.
var errNoFolder = errors.New("this process answers from a store and has no files to search line by line")

// Scan finds every matching line of the folder's files. The owner of the index says which
// files can match; this process reads them.
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
	candidates, err := index.LinesOp.Call(ctx, w.Folder, r, nil)
	if _, bad := errors.AsType[*scan.PatternError](err); err != nil && !bad && ctx.Err() == nil {
		// The owner does not answer, or has no index: every file is a candidate.
		candidates, err = scan.Select(ctx, tree, cfg.Walk(), nil, r)
	}
	if err != nil {
		return nil, err
	}
	found, err := scan.Find(ctx, tree, cfg.Walk(), cfg.Masks(), candidates, r)
	if err == nil {
		w.warn(ctx, found)
	}
	return found, err
}

// warn adds a warning for each note in an answer that rests on lines which changed.
func (w *Workspace) warn(ctx context.Context, a *scan.Answer) {
	var paths []string
	for _, l := range a.Found {
		if store.IsNote(l.Path) && !slices.Contains(paths, l.Path) {
			paths = append(paths, l.Path)
		}
	}
	if len(paths) == 0 {
		return
	}
	a.Outdated = map[string]string{}
	n, err := index.NotesOp.Call(ctx, w.Folder, index.NotesRequest{Paths: paths}, nil)
	if err != nil {
		for _, p := range paths {
			a.Outdated[p] = "not checked: " + err.Error()
		}
		return
	}
	for p, list := range n.Outdated {
		var lines []string
		for i := range list {
			lines = append(lines, list[i].String())
		}
		a.Outdated[p] = strings.Join(lines, "; ")
	}
}
