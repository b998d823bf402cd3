package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cairn/internal/atomicfile"
)

// maxConfig bounds the size of a configuration in bytes.
const maxConfig = 8 << 20

// Result describes what Write did.
type Result struct {
	Path    string `json:"path"`
	Changed bool   `json:"changed"`
	// Backup is the copy of the old file; "" for a new file.
	Backup string `json:"backup,omitempty"`
}

// Write merges the entry into the client's file in one step, after copying the old file
// next to it. On an error nothing has changed. A file within root, the workspace, may
// have come with it: neither it nor its copy is written through a link. Elsewhere a
// link, such as one into a folder of dotfiles, stays a link.
func (c Client) Write(root, path, name string, e Entry, force bool) (*Result, error) {
	dir, err := openDir(root, &path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	file, err := filepath.Rel(dir.Name(), path)
	if err != nil {
		return nil, err // unreachable: openDir opened a parent of path
	}
	var old []byte
	switch info, err := dir.Lstat(file); {
	case err == nil && (!info.Mode().IsRegular() || info.Size() > maxConfig):
		return nil, &UnsuitableError{path, "it is a link, or not a file of reasonable size"}
	case err == nil:
		if old, err = dir.ReadFile(file); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	text, err := c.Merge(path, old, name, e, force)
	if err != nil {
		return nil, err
	}
	r := &Result{Path: path}
	if bytes.Equal(text, old) {
		return r, nil
	}
	if old != nil {
		backup, err := backup(dir, file, old)
		if err != nil {
			return nil, fmt.Errorf("keeping a copy of %s: %w", path, err)
		}
		r.Backup = filepath.Join(dir.Name(), backup)
	}
	if err := atomicfile.WriteIn(dir, file, text, 0o600); err != nil {
		return nil, err
	}
	r.Changed = true
	return r, nil
}

// openDir opens root where path is within it; else the folder of the file that path is,
// or leads to, which becomes path.
func openDir(root string, path *string) (*os.Root, error) {
	if rel, err := filepath.Rel(root, *path); err == nil && filepath.IsLocal(rel) {
		return os.OpenRoot(root)
	}
	if real, err := filepath.EvalSymlinks(*path); err == nil {
		*path = real
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(*path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenRoot(filepath.Dir(*path))
}

// backups bounds the number of copies of a file.
const backups = 1000

// backup writes a copy under an unused name, which it returns.
func backup(dir *os.Root, file string, text []byte) (string, error) {
	for n := 1; n <= backups; n++ {
		name := fmt.Sprintf("%s.before-cairn-%d", file, n)
		if _, err := dir.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		mode := fs.FileMode(0o600)
		if info, err := dir.Lstat(file); err == nil {
			mode = info.Mode().Perm()
		}
		return name, atomicfile.WriteIn(dir, name, text, mode)
	}
	return "", fmt.Errorf("there are %d copies already; remove some", backups)
}
