package scan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"cairn/internal/store/ngram"
	"cairn/internal/text/secret"
	"cairn/internal/text/walk"
)

// Candidates are the files that a scan reads.
type Candidates struct {
	// Paths are sorted.
	Paths []string `json:"paths"`
	// Excluded is the number of text files that cannot have a matching line.
	Excluded int `json:"excluded"`
}

// Rules names the rules by which Update makes the text of a file.
func Rules(masks *secret.Masks) string { return "scan 1 masks=" + masks.Rules() }

// Select walks the files and returns the candidates for r. A file is excluded only if its
// size and times are those in x, and its n-grams do not fulfil the condition of the
// pattern.
func Select(ctx context.Context, t *walk.Tree, o *walk.Options, x *ngram.Index, r Request) (*Candidates, error) {
	m, err := r.Matcher()
	if err != nil {
		return nil, err
	}
	type recorded struct {
		ngram.File
		can bool
	}
	known := map[string]recorded{}
	x.Files(m.query, func(f *ngram.File, can bool) { known[f.Path] = recorded{*f, can} })
	c := &Candidates{Paths: []string{}}
	err = t.Walk(ctx, o, func(e walk.Entry) error {
		if e.Reason != walk.None || e.Dir || !r.selects(e.Path) {
			return nil
		}
		switch f, ok := known[e.Path]; {
		case f.can || !ok || !current(f.File, e):
			c.Paths = append(c.Paths, e.Path)
		case f.Text:
			c.Excluded++
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("walking the folder: %w", err)
	}
	slices.Sort(c.Paths)
	return c, nil
}

// SelectWatched is Select for a folder whose files are as recorded in x, except for those at
// and below the changed paths. ok is false if x is not complete.
func SelectWatched(ctx context.Context, t *walk.Tree, o *walk.Options, x *ngram.Index, changed []string, r Request) (c *Candidates, ok bool, err error) {
	m, err := r.Matcher()
	if err != nil {
		return nil, false, err
	}
	paths := newPaths(changed)
	c = &Candidates{Paths: []string{}}
	ok = x.Files(m.query, func(f *ngram.File, can bool) {
		switch {
		case !f.Text || !r.selects(f.Path) || paths.cover(f.Path):
		case can:
			c.Paths = append(c.Paths, f.Path)
		default:
			c.Excluded++
		}
	})
	if !ok {
		return nil, false, nil
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
	return c, true, err
}

// current reports whether a file that a walk found is as recorded.
func current(f ngram.File, e walk.Entry) bool {
	return f.ModTime != 0 && f.Size == e.Size && f.ModTime == e.ModTime && f.ChangeTime == e.ChangeTime
}

// paths are files and folders. Nil covers everything.
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
	if p == nil || len(p) > 0 && p[path] {
		return true
	}
	for i := len(path) - 1; i > 0 && len(p) > 0; i-- {
		if path[i] == '/' && p[path[:i]] {
			return true
		}
	}
	return false
}

// Update records in x the files at and below the changed paths, nil for all, if they are not
// as recorded. Calls for the same x must not overlap: an older state could replace a newer.
func Update(ctx context.Context, t *walk.Tree, o *walk.Options, masks *secret.Masks, x *ngram.Index, changed []string) error {
	var of paths
	if changed != nil {
		of = newPaths(changed)
	}
	known, seen := map[string]ngram.File{}, map[string]bool{}
	x.Files(&ngram.Query{}, func(f *ngram.File, _ bool) {
		if of.cover(f.Path) {
			known[f.Path] = *f
		}
	})
	var unread []string
	visit := func(e walk.Entry) error {
		if e.Reason != walk.None || e.Dir || !of.cover(e.Path) {
			return nil
		}
		seen[e.Path] = true
		if f, ok := known[e.Path]; !ok || !current(f, e) {
			unread = append(unread, e.Path)
		}
		return nil
	}
	var err error
	if changed == nil {
		err = t.Walk(ctx, o, visit)
	} else {
		err = t.WalkPaths(ctx, o, changed, visit)
	}
	if err != nil {
		return err
	}
	maps.DeleteFunc(known, func(path string, _ ngram.File) bool { return seen[path] })
	if len(known) > 0 {
		if err := x.Update(nil, slices.Collect(maps.Keys(known))); err != nil {
			return err
		}
	}
	files := t.Lookup()
	defer files.Close()
	var recorder ngram.Recorder
	for batch := range slices.Chunk(unread, batchFiles) {
		var records []ngram.Record
		var unreadable []string
		for _, path := range batch {
			if err := ctx.Err(); err != nil {
				return err
			}
			r, ok, err := record(files, o, masks, &recorder, path)
			if err != nil {
				return err
			}
			if ok {
				records = append(records, r)
			} else {
				unreadable = append(unreadable, path)
			}
		}
		if err := x.Update(records, unreadable); err != nil {
			return err
		}
	}
	return nil
}

// batchFiles is the number of files that Update records in one transaction.
const batchFiles = 1024

// racyTime is the age above which the time of a file's last change is reliable: file
// systems use a clock with a resolution of some milliseconds.
const racyTime = 50 * time.Millisecond

// record reads a file and records its state before it was read. ok is false if a
// scan cannot read it either, until it changes.
func record(files *walk.Lookup, o *walk.Options, masks *secret.Masks, to *ngram.Recorder, path string) (r ngram.Record, ok bool, err error) {
	content, info, err := files.ReadFile(path, o.SizeOf(path))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, walk.ErrSymlink), errors.Is(err, walk.ErrSpecial), errors.Is(err, walk.ErrSize):
		return r, false, nil
	case err != nil:
		return r, false, err
	}
	f := ngram.File{Path: path, Size: info.Size(), ModTime: info.ModTime().UnixNano(), ChangeTime: walk.ChangeTime(info), Text: walk.Check(content) == walk.None}
	if age := time.Since(time.Unix(0, max(f.ModTime, f.ChangeTime))); -racyTime < age && age < racyTime || f.Size != int64(len(content)) {
		f.ModTime = 0
	}
	text, _ := masks.Mask(content)
	return to.Record(f, text), true, nil
}
