package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/base/home"
	"cairn/internal/text/walk"
)

// Root is a further folder that is searched with the workspace. The paths of its documents
// begin with its name and a slash.
type Root = walk.Root

// Roots returns the folders to walk, the main one first.
func (s Selection) Roots() []Root { return append([]Root{{Dir: s.Root}}, s.Further...) }

// further returns the further folders of root: those stored for it and those of list, which
// take precedence. list is CAIRN_ROOTS: NAME=DIR, separated as in PATH. Both come from the
// user, so that they can name any folder; a repository's configuration has no such key.
func further(root, list string, refuse refusal) ([]Root, error) {
	dirs := map[string]string{}
	if place, err := home.Of(root); err == nil { // otherwise the folder cannot be indexed
		place.Follow()
		if dirs, err = place.Roots(); err != nil {
			return nil, err
		}
	}
	for _, part := range filepath.SplitList(list) {
		if part == "" {
			continue
		}
		name, dir, ok := strings.Cut(part, "=")
		if !ok || name == "" || !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("CAIRN_ROOTS holds %q, want NAME=DIR with an absolute folder", part)
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, fmt.Errorf("CAIRN_ROOTS: %w", err)
		}
		if why := refuse.why(real); why != "" {
			return nil, &RefusedError{Dir: real, Why: why, Rule: "CAIRN_ROOTS"}
		}
		dirs[name] = real
	}
	return rootsOf(dirs), nil
}

// rootsOf returns folders by their names, sorted.
func rootsOf(dirs map[string]string) (roots []Root) {
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		roots = append(roots, Root{Name: name, Dir: dirs[name]})
	}
	return roots
}

// Keep stores the further folders for later selections, so that a process without
// CAIRN_ROOTS does not remove their documents from the index.
func (s Selection) Keep() error {
	if len(s.Further) == 0 {
		return nil
	}
	place, err := home.Of(s.Root)
	if err != nil {
		return nil // the folder cannot be indexed
	}
	if kept, err := place.Roots(); err != nil || maps.Equal(kept, s.dirs()) {
		return err
	}
	return s.set()
}

// AddRoot adds a further folder and stores it for later selections.
func (s Selection) AddRoot(name, dir string) (Selection, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return s, err
	}
	if why := newRefusal().why(dir); why != "" {
		return s, fmt.Errorf("%s is %s and cannot be searched", dir, why)
	}
	if _, err := os.Lstat(filepath.Join(s.Root, name)); err == nil {
		return s, fmt.Errorf("the folder has a %q of its own; choose another name", name)
	}
	dirs := s.dirs()
	dirs[name] = dir
	s.Further = rootsOf(dirs)
	tree, err := walk.Open(s.Roots()...)
	if err != nil {
		return s, err
	}
	tree.Close()
	return s, s.set()
}

// RemoveRoot removes a further folder, also from later selections.
func (s Selection) RemoveRoot(name string) (Selection, error) {
	left := slices.DeleteFunc(slices.Clone(s.Further), func(r Root) bool { return r.Name == name })
	if len(left) == len(s.Further) {
		return s, fmt.Errorf("no further folder is named %q", name)
	}
	s.Further = left
	return s, s.set()
}

func (s Selection) set() error {
	place, err := home.Of(s.Root)
	if err != nil {
		return err
	}
	return place.SetRoots(s.dirs())
}

// dirs returns the further folders by name.
func (s Selection) dirs() map[string]string {
	dirs := map[string]string{}
	for _, r := range s.Further {
		dirs[r.Name] = r.Dir
	}
	return dirs
}
