package term

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"cairn/internal/text/markdown"
	"cairn/internal/text/walk"
)

// Places translates between the paths that a person types, relative to the current folder,
// and the paths of documents in a workspace.
type Places struct {
	roots []walk.Root
	here  string // the current folder in the workspace; "." at its root, or outside of it
}

// NewPlaces returns the translation for the roots of a workspace. dir is the absolute path of
// the current folder; "" means the root of the workspace.
func NewPlaces(roots []walk.Root, dir string) Places {
	p := Places{roots: roots, here: "."}
	if dir != "" {
		if at, ok := p.within(dir); ok {
			p.here = at
		}
	}
	return p
}

// within returns the path of an absolute name in the workspace.
func (p Places) within(name string) (string, bool) {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	return walk.PathIn(p.roots, name)
}

// Document returns the path in the workspace of a document that a person typed, with its
// "#anchor" or lines. A path that does not exist relative to the current folder is relative to
// the root of the workspace.
func (p Places) Document(typed string) string {
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

// Documents is Document for many paths.
func (p Places) Documents(typed []string) []string {
	var paths []string
	for _, t := range typed {
		paths = append(paths, p.Document(t))
	}
	return paths
}

// Folder returns the prefix of the paths below a folder, or the path of a file, that a
// person typed; "" for the whole workspace.
func (p Places) Folder(typed string) string {
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
func (p Places) resolve(typed string) (string, bool) {
	if filepath.IsAbs(typed) {
		return p.within(typed)
	}
	at := path.Join(p.here, filepath.ToSlash(typed))
	return at, filepath.IsLocal(at)
}

// Near returns whether a name that a person typed is that of no file or folder, and the name of
// one that is similar, or "".
func (p Places) Near(typed string) (missing bool, near string) {
	top := Places{roots: p.roots, here: "."}
	if typed == "" || p.exists(typed) || top.exists(typed) {
		return false, ""
	}
	at, ok := p.resolve(typed)
	if !ok {
		return true, ""
	}
	parent := path.Dir(at)
	entries, _ := os.ReadDir(p.File(parent))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	for _, name := range markdown.Nearest(names, path.Base(at), 1) {
		near = p.Shown(path.Join(parent, name))
	}
	return true, near
}

func (p Places) exists(typed string) bool {
	at, ok := p.resolve(typed)
	if !ok {
		return false
	}
	_, err := os.Lstat(p.File(at))
	return err == nil
}

// Shown returns the path of a document from the current folder.
func (p Places) Shown(document string) string {
	rel, err := filepath.Rel(filepath.FromSlash(p.here), filepath.FromSlash(document))
	if err != nil {
		return document
	}
	return filepath.ToSlash(rel)
}

// File returns the name of the file of a document.
func (p Places) File(document string) string {
	for _, r := range p.roots[1:] {
		if rest, ok := strings.CutPrefix(document+"/", r.Name+"/"); ok {
			return filepath.Join(r.Dir, filepath.FromSlash(rest))
		}
	}
	return filepath.Join(p.roots[0].Dir, filepath.FromSlash(document))
}
