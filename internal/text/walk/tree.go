// Package walk lists the files of a workspace to index, with a reason for every other
// file, and reads files without ever leaving the workspace.
//
// It does not watch, parse or store files.
package walk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Root is one folder of a workspace. The main root has an empty name, and its paths have no
// prefix. The paths of another root begin with its name and a slash.
type Root struct {
	Name string `json:"name"`
	Dir  string `json:"dir"`
}

// Tree holds the open roots of one workspace. It is safe for concurrent use.
type Tree struct {
	mu    sync.RWMutex
	roots []opened // sorted by name, the main root first
}

type opened struct {
	Root
	fs *os.Root
}

// ErrRoots is wrapped by the errors of Open about unsuitable roots.
var ErrRoots = errors.New("a folder to search cannot be used")

// Open opens the roots. One must be the main root. Names must be single path elements,
// different and not hidden. No root may be inside another, because its files would have two
// paths. The Tree must be closed.
func Open(roots ...Root) (*Tree, error) {
	t := &Tree{}
	for _, r := range roots {
		if r.Name != "" {
			clean, err := Clean(r.Name)
			if err != nil || clean != r.Name || strings.Contains(clean, "/") || clean[0] == '.' {
				return nil, t.abort(fmt.Errorf("%w: name %q, want one visible path element", ErrRoots, r.Name))
			}
		}
		dir, err := filepath.EvalSymlinks(r.Dir)
		if err == nil {
			dir, err = filepath.Abs(dir)
		}
		if err != nil {
			if r.Name != "" {
				return nil, t.abort(fmt.Errorf("%w: %w; `cairn roots remove %s` removes it from the workspace", ErrRoots, err, r.Name))
			}
			return nil, t.abort(fmt.Errorf("opening root %s: %w", r.Dir, err))
		}
		for _, o := range t.roots {
			if o.Name == r.Name {
				return nil, t.abort(fmt.Errorf("%w: two named %q", ErrRoots, r.Name))
			}
			_, inside := PathIn([]Root{o.Root}, dir)
			if _, around := PathIn([]Root{{Dir: dir}}, o.Dir); inside || around {
				return nil, t.abort(fmt.Errorf("%w: %s and %s overlap", ErrRoots, o.Dir, r.Dir))
			}
		}
		f, err := os.OpenRoot(dir)
		if err != nil {
			return nil, t.abort(fmt.Errorf("opening root %s: %w", r.Dir, err))
		}
		t.roots = append(t.roots, opened{Root{r.Name, dir}, f})
	}
	slices.SortFunc(t.roots, func(a, b opened) int { return strings.Compare(a.Name, b.Name) })
	if len(t.roots) == 0 || t.roots[0].Name != "" {
		return nil, t.abort(fmt.Errorf("%w: no main root", ErrRoots))
	}
	return t, nil
}

func (t *Tree) abort(err error) error {
	return errors.Join(err, t.Close())
}

// Close closes the roots.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, r := range t.roots {
		errs = append(errs, r.fs.Close())
	}
	t.roots = nil
	return errors.Join(errs...)
}

// opened returns the open roots.
func (t *Tree) opened() []opened {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.roots
}

// Reopen opens the roots that were removed and created again; without it, the Tree would
// continue to use the removed folders. Calls in progress continue to use them, and the
// garbage collector closes them.
func (t *Tree) Reopen() {
	if !t.Moved() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	roots := slices.Clone(t.roots)
	for i, r := range roots {
		if info, err := os.Lstat(r.Dir); err != nil || !info.IsDir() {
			continue // still missing, or now a link
		}
		if f, err := os.OpenRoot(r.Dir); err == nil {
			roots[i].fs = f
		}
	}
	t.roots = roots
}

// Moved reports whether a root was removed, or replaced by another folder.
func (t *Tree) Moved() bool {
	for _, r := range t.opened() {
		there, err := os.Stat(r.Dir)
		mine, mineErr := r.fs.Stat(".")
		if errors.Is(err, fs.ErrNotExist) || err == nil && mineErr == nil && !os.SameFile(there, mine) {
			return true
		}
	}
	return false
}

// Roots returns the roots, the main root first. Symbolic links in Root.Dir are resolved.
func (t *Tree) Roots() []Root {
	roots := t.opened()
	out := make([]Root, len(roots))
	for i, r := range roots {
		out[i] = r.Root
	}
	return out
}

// locate splits a workspace path into its root and the path in the root.
func (t *Tree) locate(p string) (*os.Root, string, error) {
	clean, err := Clean(p)
	if err != nil {
		return nil, "", err
	}
	roots := t.opened()
	if len(roots) == 0 {
		return nil, "", fs.ErrClosed
	}
	root, rel := split(roots, clean)
	if rel == "" { // the name of a further root alone means a file of the main root
		root, rel = 0, clean
	}
	return roots[root].fs, rel, nil
}

// split returns the index of the root of a clean path, and the path in the root; "" is the
// root itself.
func split(roots []opened, clean string) (root int, rel string) {
	first, rest, _ := strings.Cut(clean, "/")
	for i, r := range roots {
		if i > 0 && r.Name == first {
			return i, rest
		}
	}
	return 0, clean
}

// Dir returns the root of a workspace path as a folder in the file system, and the path in
// the root. They are for messages and editors; programs read files with ReadFile.
func (t *Tree) Dir(p string) (root, rel string, err error) {
	f, rel, err := t.locate(p)
	if err != nil {
		return "", "", err
	}
	return f.Name(), rel, nil
}

// Stat returns the state of the file or folder at a workspace path. It refuses symbolic
// links as ReadFile does.
func (t *Tree) Stat(p string) (fs.FileInfo, error) {
	l := t.Lookup()
	defer l.Close()
	return l.Stat(p)
}

// Errors of ReadFile in addition to those of the file system.
var (
	ErrSymlink = errors.New("symbolic links are not followed")
	ErrSpecial = errors.New("not a regular file")
	ErrSize    = errors.New("file too large")
	ErrChanged = errors.New("file keeps being replaced while it is opened")
)

// ReadFile cleans a workspace path and reads the file. It reads only regular files within
// the roots, follows no symbolic link, and reads at most limit bytes (0 means
// DefaultMaxSize). Otherwise the error wraps ErrPath, ErrSymlink, ErrSpecial, ErrSize,
// ErrChanged or an error of the file system. Only errors.Is(err, fs.ErrNotExist) means that
// the file was removed. ReadFile does not apply ignore rules; the caller decides which
// files may be read.
func (t *Tree) ReadFile(p string, limit int64) ([]byte, fs.FileInfo, error) {
	l := t.Lookup()
	defer l.Close()
	return l.ReadFile(p, limit)
}

// readAttempts bounds the attempts of ReadFile to read a file that a writer keeps replacing.
const readAttempts = 10

// ReadFile returns the same as Tree.ReadFile.
func (l *Lookup) ReadFile(p string, limit int64) ([]byte, fs.FileInfo, error) {
	if limit <= 0 {
		limit = DefaultMaxSize
	}
	for n := 1; ; n++ {
		data, info, err := l.readFile(p, limit)
		if !errors.Is(err, ErrChanged) || n == readAttempts {
			return data, info, err
		}
	}
}

// readFile is one attempt of ReadFile.
func (l *Lookup) readFile(p string, limit int64) ([]byte, fs.FileInfo, error) {
	f, info, err := l.open(p)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	var data []byte
	if info.Size() <= limit {
		data = make([]byte, 0, info.Size()+1)
	}
	for info.Size() <= limit && int64(len(data)) <= limit {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, info, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", p, err)
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, len(data))
		}
	}
	return nil, nil, fmt.Errorf("reading %s: %w", p, ErrSize)
}

// open opens a file and returns its state, or ErrChanged if it was replaced meanwhile.
func (l *Lookup) open(p string) (f *os.File, info fs.FileInfo, err error) {
	root, rel, err := l.tree.locate(p)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading %s: %w", p, err)
		}
	}()
	folder, name, before, err := l.find(root, rel)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, ErrSpecial
	}
	// A pipe may have replaced the file: O_NONBLOCK keeps open from waiting for its writer.
	f, err = folder.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, pathError(rel, err)
	}
	if info, err = f.Stat(); err == nil && !os.SameFile(before, info) {
		err = ErrChanged // a link or another file has replaced it, for example by a writer's rename
	}
	if err != nil {
		f.Close() // nothing was written
		return nil, nil, err
	}
	return f, info, nil
}
