package main

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"cairn/internal/config"
	"cairn/internal/walk"
)

// places translates between paths as a person types them, relative to the current
// folder, and the paths of documents in a workspace.
type places struct {
	roots []walk.Root
	here  string // the current folder in the workspace; "." at its root, or outside of it
}

// paths returns the translation for a workspace. With -C paths are relative to that
// folder, as if the command had been started there.
func (a *app) paths(sel config.Selection) places {
	p := places{roots: sel.Roots(), here: "."}
	if a.dir != "" {
		return p
	}
	if dir, err := os.Getwd(); err == nil {
		if at, ok := p.within(dir); ok {
			p.here = at
		}
	}
	return p
}

// within returns the path of an absolute name in the workspace.
func (p places) within(name string) (string, bool) {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	for _, r := range p.roots {
		if rel, err := filepath.Rel(r.Dir, name); err == nil && filepath.IsLocal(rel) {
			return path.Join(r.Name, filepath.ToSlash(rel)), true
		}
	}
	return "", false
}

// document returns the path of a document, with its "#anchor" or lines, as a person typed
// it. A path that does not exist relative to the current folder is relative to the root of
// the workspace.
func (p places) document(typed string) string {
	file, rest := typed, ""
	for !p.exists(file) {
		i := strings.LastIndexAny(file, "#:")
		if i <= 0 {
			if at, ok := p.within(typed); ok && filepath.IsAbs(typed) {
				return at
			}
			return typed
		}
		file, rest = file[:i], file[i:]+rest
	}
	at, _ := p.resolve(file)
	return at + rest
}

// documents is document for many.
func (p places) documents(typed []string) []string {
	var paths []string
	for _, t := range typed {
		paths = append(paths, p.document(t))
	}
	return paths
}

// folder returns the prefix of the paths below a folder, or the path of a file, that a
// person typed; "" for the whole workspace.
func (p places) folder(typed string) string {
	at, ok := p.resolve(typed)
	if typed == "" || !ok || !p.exists(typed) {
		return typed
	}
	if at == "." {
		return ""
	}
	if info, err := os.Stat(p.File(at)); err == nil && info.IsDir() {
		at += "/"
	}
	return at
}

// resolve returns the path in the workspace of a name that a person typed.
func (p places) resolve(typed string) (string, bool) {
	if filepath.IsAbs(typed) {
		return p.within(typed)
	}
	at := path.Join(p.here, filepath.ToSlash(typed))
	return at, filepath.IsLocal(at)
}

func (p places) exists(typed string) bool {
	at, ok := p.resolve(typed)
	if !ok {
		return false
	}
	_, err := os.Lstat(p.File(at))
	return err == nil
}

// Shown is term.Places: the path from the current folder.
func (p places) Shown(document string) string {
	rel, err := filepath.Rel(filepath.FromSlash(p.here), filepath.FromSlash(document))
	if err != nil {
		return document
	}
	return filepath.ToSlash(rel)
}

// File is term.Places.
func (p places) File(document string) string {
	for _, r := range p.roots[1:] {
		if rest, ok := strings.CutPrefix(document+"/", r.Name+"/"); ok {
			return filepath.Join(r.Dir, filepath.FromSlash(rest))
		}
	}
	return filepath.Join(p.roots[0].Dir, filepath.FromSlash(document))
}
