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

// Write merges the entry into the client's file in one step, after copying the old
// file next to it. On an error nothing has changed.
func (c Client) Write(path, name string, e Entry, force bool) (*Result, error) {
	// A link, such as one into a folder of dotfiles, stays a link.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	mode := fs.FileMode(0o600)
	var old []byte
	switch info, err := os.Stat(path); {
	case err == nil && (!info.Mode().IsRegular() || info.Size() > maxConfig):
		return nil, &UnsuitableError{path, "it is not a file of reasonable size"}
	case err == nil:
		mode = info.Mode().Perm()
		if old, err = os.ReadFile(path); err != nil {
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
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if old != nil {
		if r.Backup, err = backup(path, old, mode); err != nil {
			return nil, fmt.Errorf("keeping a copy of %s: %w", path, err)
		}
	}
	if err := atomicfile.Write(path, text, mode); err != nil {
		return nil, err
	}
	r.Changed = true
	return r, nil
}

// backups bounds the number of copies of a file.
const backups = 1000

// backup writes a copy under an unused name.
func backup(path string, text []byte, mode fs.FileMode) (string, error) {
	for n := 1; n <= backups; n++ {
		name := fmt.Sprintf("%s.before-cairn-%d", path, n)
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(text)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			os.Remove(name)
			return "", err
		}
		return name, nil
	}
	return "", fmt.Errorf("there are %d copies already; remove some", backups)
}
