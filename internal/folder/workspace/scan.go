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

// errNoFolder is returned by Scan in a process that answers from a store alone.
var errNoFolder = errors.New("this process answers from a store and has no files to search line by line")

// Scan finds every matching line of the folder's files.
func (w *Workspace) Scan(ctx context.Context, r scan.Request) (*scan.Answer, error) {
	if w.options.Store != nil && w.options.Stateless {
		return nil, errNoFolder
	}
	if err := w.exists(); err != nil {
		return nil, err
	}
	cfg := w.Config()
	r.Rules = cfg.Masks().Rules()
	found, err := index.LinesOp.Call(ctx, w.Folder, r, nil)
	if _, bad := errors.AsType[*scan.PatternError](err); err != nil && !bad && ctx.Err() == nil {
		w.options.Logger.Debug("reading all files without their documents", "error", err)
		found, err = w.scanAlone(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	a := found.Answer
	a.Found = found.Found
	a.List()
	w.warn(ctx, a)
	return a, nil
}

// scanAlone is Scan without the owner, which does not answer, has other rules, or cannot read
// the documents.
func (w *Workspace) scanAlone(ctx context.Context, r scan.Request) (_ *index.Found, err error) {
	tree, err := walk.Open(w.selection.Roots()...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	cfg := w.Config()
	c, err := scan.Select(ctx, tree, cfg.Walk(), nil, r)
	if err != nil {
		return nil, err
	}
	a, err := scan.Find(ctx, tree, cfg.Walk(), cfg.Masks(), nil, c, r)
	if err != nil {
		return nil, err
	}
	return &index.Found{Answer: a, Found: a.Found}, nil
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
