package scan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/store/docs"
	"cairn/internal/store/ngram"
	"cairn/internal/text/walk"
)

// Candidates are the files that a scan reads.
type Candidates struct {
	// Paths are sorted.
	Paths []string `json:"paths"`
	// Excluded is the number of text files that cannot have a matching line.
	Excluded int `json:"excluded"`
}

// Known are the states of the files of a folder in its documents. It does not change. Nil
// knows no file.
type Known struct {
	files []file
	at    map[string]int // by path, in files
}

// file is a file as it was read. A young one, see package indexer, has no ModTime.
type file struct {
	docs.File
	grams ngram.Filter
}

// Record returns what the documents know of the files. before, which may be nil, is an
// earlier result for the same documents.
func Record(r *docs.Reader, before *Known) (*Known, error) {
	k := &Known{at: map[string]int{}}
	add := func(f file) {
		k.at[f.Path] = len(k.files)
		k.files = append(k.files, f)
	}
	err := r.Files("", func(f docs.File) bool {
		if old := before.find(f.Path); old != nil && old.Hash == f.Hash {
			add(file{f, old.grams})
		} else {
			add(file{f, r.Grams(f.Path)})
		}
		return true
	})
	for _, s := range r.Skipped() {
		if f := k.find(s.Path); f != nil { // in part, or in a state that cannot be read
			f.grams = s.Grams
		} else if s.ModTime != 0 || s.Grams != "" { // because of its content
			add(file{docs.File{Path: s.Path, Size: s.Size, ModTime: s.ModTime, ChangeTime: s.ChangeTime}, s.Grams})
		}
	}
	return k, err
}

// find returns what is known of a file, nil if that is nothing.
func (k *Known) find(path string) *file {
	if k == nil {
		return nil
	}
	if i, ok := k.at[path]; ok {
		return &k.files[i]
	}
	return nil
}

// Containing returns the paths of the files that can contain a text, without regard to case.
func (k *Known) Containing(text string) (paths []string) {
	query := ngram.Literal(text)
	for i := range k.files {
		if f := &k.files[i]; query.Match(f.grams) {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// Select walks the files and returns the candidates for r. A file is excluded only if its
// size and times are known, and its filter does not match the condition of the pattern.
func Select(ctx context.Context, t *walk.Tree, o *walk.Options, known *Known, r Request) (*Candidates, error) {
	m, err := r.Matcher()
	if err != nil {
		return nil, err
	}
	c := &Candidates{Paths: []string{}}
	err = t.Walk(ctx, o, func(e walk.Entry) error {
		if e.Reason != walk.None || e.Dir || !r.selects(e.Path) {
			return nil
		}
		if f := known.find(e.Path); f == nil || f.ModTime == 0 || f.Size != e.Size || f.ModTime != e.ModTime || f.ChangeTime != e.ChangeTime {
			c.Paths = append(c.Paths, e.Path)
		} else {
			c.add(f, m)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("walking the folder: %w", err)
	}
	slices.Sort(c.Paths)
	return c, nil
}

// add adds or excludes a file in its known state.
func (c *Candidates) add(f *file, m *Matcher) {
	if m.query.Match(f.grams) {
		c.Paths = append(c.Paths, f.Path)
	} else if f.grams != ngram.NotText {
		c.Excluded++
	}
}

// SelectWatched is Select for a folder of which all files are in their known state, except
// for those at and below the changed paths.
func SelectWatched(ctx context.Context, t *walk.Tree, o *walk.Options, known *Known, changed []string, r Request) (*Candidates, error) {
	m, err := r.Matcher()
	if err != nil {
		return nil, err
	}
	paths := newPaths(changed)
	c := &Candidates{Paths: []string{}}
	for i := range known.files {
		if f := &known.files[i]; r.selects(f.Path) && !paths.cover(f.Path) {
			c.add(f, m)
		}
	}
	if len(changed) > 0 {
		err = t.WalkPaths(ctx, o, changed, func(e walk.Entry) error {
			if e.Reason == walk.None && !e.Dir && r.selects(e.Path) && paths.cover(e.Path) {
				c.Paths = append(c.Paths, e.Path)
			}
			return nil
		})
	}
	slices.Sort(c.Paths)
	return c, err
}

// paths are files and folders.
type paths map[string]bool

func newPaths(list []string) paths {
	p := make(paths, len(list))
	for _, path := range list {
		p[strings.TrimSuffix(path, "/")] = true
	}
	return p
}

// cover reports whether a path is one of p or below it.
func (p paths) cover(path string) bool {
	if len(p) > 0 && p[path] {
		return true
	}
	for i := len(path) - 1; i > 0 && len(p) > 0; i-- {
		if path[i] == '/' && p[path[:i]] {
			return true
		}
	}
	return false
}
