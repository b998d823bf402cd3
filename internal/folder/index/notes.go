package index

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"sync"

	"cairn/internal/store"
	"cairn/internal/text/walk"
	"cairn/internal/text/watch"
	"cairn/retriever"
)

// NotesRequest asks for the outdated notes among Paths, or among all notes if there are none.
type NotesRequest struct {
	Paths []string `json:"paths,omitempty"`
}

// Notes counts notes, and maps the paths of those that are outdated to what they rest on.
type Notes struct {
	Notes    int                             `json:"notes"`
	Outdated map[string][]retriever.Outdated `json:"outdated"`
}

// noteMarks is what the last checks of the notes have found.
type noteMarks struct {
	mu sync.Mutex
	of map[string]retriever.CheckedNote // by path; nil unless every note was checked
}

// Notes returns the outdated notes. It checks given notes, and notes that changes since their
// last check can affect. Only if the folder is not watched, it checks all of them.
func (x *Index) Notes(ctx context.Context, r NotesRequest) (*Notes, error) {
	if len(r.Paths) > 0 {
		checked := map[string]retriever.CheckedNote{}
		err := x.checkNotes(ctx, checked, r.Paths)
		return newNotes(checked), err
	}
	changes, watched := x.unhandled()
	changes.All = changes.All || !watched
	x.notes.mu.Lock()
	defer x.notes.mu.Unlock()
	err := x.markNotes(ctx, changes)
	return newNotes(x.notes.of), err
}

func newNotes(checked map[string]retriever.CheckedNote) *Notes {
	n := &Notes{Notes: len(checked), Outdated: map[string][]retriever.Outdated{}}
	for path, c := range checked {
		if len(c.Outdated) > 0 {
			n.Outdated[path] = c.Outdated
		}
	}
	return n
}

// mark is markNotes for the watcher, with the changes that it has seen, and after a run.
func (x *Index) mark(ctx context.Context, changes watch.Batch) {
	x.notes.mu.Lock()
	defer x.notes.mu.Unlock()
	if err := x.markNotes(ctx, changes); err != nil && ctx.Err() == nil {
		x.options.Logger.Warn("checking notes", "error", err) // the next call checks all of them
	}
}

// markNotes checks the notes that changes can affect: those that changed themselves, that cite
// a changed file, or that are outdated, because their lines may be in another file now. The
// caller holds x.notes.mu.
func (x *Index) markNotes(ctx context.Context, changes watch.Batch) error {
	paths, err := x.indexed()
	if err != nil {
		return err
	}
	old := x.notes.of
	changed := func(file string) bool {
		return slices.ContainsFunc(changes.Paths, func(p string) bool { return walk.Under(file, p) })
	}
	isFolder := func(file string) bool { return path.Ext(file) == "" } // it may be one
	files := slices.DeleteFunc(slices.Clone(changes.Paths), store.IsNote)
	next, due := map[string]retriever.CheckedNote{}, []string{}
	for _, p := range paths {
		c, known := old[p]
		switch {
		case !store.IsNote(p):
		case !known || changes.All || changed(p) || slices.ContainsFunc(c.Files, changed):
			due = append(due, p)
		case len(c.Outdated) == 0 || len(files) == 0:
			next[p] = c
		case len(files) > fewChanges || slices.ContainsFunc(files, isFolder):
			due = append(due, p)
		default: // only the changed files can have its lines now
			next[p] = c
			if again, err := x.checkNote(ctx, p, files...); err == nil && len(again.Outdated) == 0 {
				next[p] = again
			}
		}
	}
	for _, p := range changes.Paths { // which the documents may lack
		if path.Ext(p) == ".md" && store.IsNote(p) && !slices.Contains(paths, p) {
			due = append(due, p)
		}
	}
	x.notes.of = nil // after an error all notes are due
	if err := x.checkNotes(ctx, next, due); err != nil {
		return err
	}
	x.notes.of = next
	return nil
}

// fewChanges is the most changed files in which each outdated note is looked for.
const fewChanges = 10

func (x *Index) checkNote(ctx context.Context, p string, documents ...string) (retriever.CheckedNote, error) {
	return answer(x, func() (retriever.CheckedNote, error) { return x.retriever.CheckNote(ctx, p, documents...) })
}

// checkNotes adds the notes that exist at the paths to checked.
func (x *Index) checkNotes(ctx context.Context, checked map[string]retriever.CheckedNote, paths []string) error {
	for _, p := range paths {
		c, err := x.checkNote(ctx, p)
		if errors.Is(err, retriever.ErrNoNote) {
			continue
		}
		if err != nil {
			return err
		}
		checked[p] = c
	}
	return nil
}

// maxListed is the most paths of outdated notes in a status.
const maxListed = 20

// SetNotes sets the fields about notes.
func (s *Status) SetNotes(n *Notes) {
	paths := slices.Sorted(maps.Keys(n.Outdated))
	s.Notes, s.Outdated, s.OutdatedNotes = n.Notes, len(paths), paths[:min(maxListed, len(paths))]
}
