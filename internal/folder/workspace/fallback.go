package workspace

import (
	"path/filepath"
	"slices"

	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox"
)

// fallback reads the files of an owner that does not answer.
type fallback struct {
	*service
	versions []kv.Version // of the files before they were opened
}

// Removed reports whether the owner has changed a file. Answers may then mix two states.
func (f *fallback) Removed() bool {
	return slices.ContainsFunc(f.versions, func(v kv.Version) bool { return !v.Current() })
}

// serveReads runs the operations that only read, without the owner of the files in place.
// The keyword index and the vectors need no version: they only add to files, or replace
// them, and the owner marks every change of them in the documents.
func (w *Workspace) serveReads(s *owner.Server, silent *owner.LockError, place home.Place) *fallback {
	f := &fallback{}
	for _, path := range append(toolbox.Files(place), filepath.Join(place.Index, index.DocumentsFile)) {
		f.versions = append(f.versions, kv.VersionOf(path))
	}
	t := w.toolboxOptions(place)
	t.ReadOnly = true
	tools := toolbox.New(t)
	o := w.indexOptions(place)
	o.Silent, o.ReadUsage = silent, tools.Read
	x := index.New(o)
	x.ServeReads(s)
	tools.ServeReads(s)
	f.service = &service{x, tools, nil}
	return f
}
