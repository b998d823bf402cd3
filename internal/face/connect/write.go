package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/rogpeppe/go-internal/diff"

	"cairn/internal/base/atomicfile"
)

// maxFile bounds the size of a file that is changed, in bytes.
const maxFile = 8 << 20

// Change is a planned change of one file.
type Change struct {
	Path string // of the file
	Old  []byte // nil if the file does not exist
	New  []byte // nil to remove the file

	dir     string  // a folder above the file; Write changes nothing outside it
	name    string  // of the file in dir
	private bool    // a new file is readable for its user only
	record  *record // of the configuration of a client; nil for other files
	removes bool    // what cairn has written
	dropped string  // the entry that the change removes, if any
}

// File is the configuration of a client. Path is outside of Root, the workspace, if the client
// has one for all folders. Copies is a private directory of the user.
type File struct{ Root, Path, Copies string }

// Result describes what Change.Write did.
type Result struct {
	Path    string `json:"path"`
	Changed bool   `json:"changed"`
	// Backup is the path of the copy of the old file; "" if there is none.
	Backup string `json:"backup,omitempty"`
}

// Add plans the change that adds the entry to the client's file. In the workspace it refuses
// links, because files there may be from someone else. Elsewhere it follows them, such as
// links to a folder of dotfiles. The change removes the servers in moved, until Drop. It updates
// an entry of that name that starts cairn on the workspace, such as one with another program.
func (c Client) Add(at File, name string, e Entry, force bool, moved ...string) (*Change, error) {
	return plan(at.Root, at.Path, func(f *Change) (err error) {
		f.private = true
		update := c.starts(f.Old, name, at.Root)
		a := added{name, e.Command, e.Args, force || update, moved}
		if f.New, err = a.merge(c, f.Path, f.Old); err != nil || bytes.Equal(f.New, f.Old) {
			return err
		}
		if f.record, err = openRecord(at.Copies, f.Path); err == nil {
			err = f.record.add(c, f.Old, a, update)
		}
		return err
	})
}

// Drop plans the change that removes the client's entry for the workspace. If nothing else has
// changed the file since Add, the file becomes what it would be without the entry, byte for
// byte. Otherwise Drop removes the entry, adds the servers that Add has moved, and removes a
// file that contains only what Add writes to a new file.
func (c Client) Drop(at File, name string) (*Change, error) {
	return plan(at.Root, at.Path, func(f *Change) error {
		text, err := c.Remove(f.Path, f.Old, name, at.Root)
		if f.New = text; err != nil || bytes.Equal(text, f.Old) {
			return err
		}
		if f.record, err = openRecord(at.Copies, f.Path); err != nil {
			return err
		}
		f.removes, f.dropped = true, name
		left := slices.DeleteFunc(slices.Clone(f.record.Added), func(a added) bool { return a.Name == name })
		if len(left) < len(f.record.Added) && f.record.describes(c, f.Old) { // nothing else has changed the file
			if before, err := f.record.with(c, left); err == nil {
				f.New = before
				return nil
			}
		}
		if text, err = f.record.returned(c, text, name); err != nil {
			return err
		}
		f.New = text
		if c.format != tables && f.record.before != nil && c.servers(f.record.before) == nil { // Add has made the section
			if f.New, err = c.withoutEmpty(f.Path, text); err != nil {
				return err
			}
		}
		empty, err := c.Remove(f.Path, []byte(c.Text(name, c.Entry("cairn", at.Root))), name, at.Root)
		if bytes.Equal(bytes.TrimSpace(text), bytes.TrimSpace(empty)) {
			f.New = nil
		}
		return err
	})
}

// Connected reports whether the client's file has an entry for root, under any name.
func (c Client) Connected(root, path string) bool {
	found := false
	_, err := plan(root, path, func(f *Change) error {
		for _, have := range c.servers(f.Old) {
			if e, ok := entryOf(have); ok && e.starts(root) {
				found = true
			}
		}
		return nil
	})
	return err == nil && found
}

// plan reads the file at path and calls change, which sets the new content. The dir of the Change is
// root if path is within root, or else the folder of the file.
func plan(root, path string, change func(*Change) error) (*Change, error) {
	f := &Change{Path: path, dir: root}
	var err error
	if f.name, err = filepath.Rel(root, path); err != nil || !filepath.IsLocal(f.name) { // follow links
		if real, err := filepath.EvalSymlinks(path); err == nil {
			f.Path = real
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		f.dir, f.name = filepath.Split(f.Path)
	}
	if f.Old, err = f.read(); err != nil {
		return nil, err
	}
	if err := change(f); err != nil {
		return nil, err
	}
	return f, nil
}

// read returns the content of the file, nil if it does not exist.
func (f *Change) read() ([]byte, error) {
	dir, err := os.OpenRoot(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	info, err := dir.Lstat(f.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, &UnsuitableError{f.Path, "it is a link, or not a file of reasonable size"}
	}
	text, err := dir.ReadFile(f.name)
	if text == nil && err == nil {
		text = []byte{}
	}
	return text, err
}

// Changes reports whether there is something to write.
func (f *Change) Changes() bool {
	return f != nil && (!bytes.Equal(f.Old, f.New) || f.Old != nil && f.New == nil)
}

// Diff returns the change as a unified diff, "" for no change.
func (f *Change) Diff() string {
	oldName, newName := f.Path, f.Path
	if f.Old == nil {
		oldName = "/dev/null"
	}
	if f.New == nil {
		newName = "/dev/null"
	}
	_, text, _ := bytes.Cut(diff.Diff(oldName, f.Old, newName, f.New), []byte("\n")) // omit the line "diff OLD NEW"
	return string(text)
}

// Write makes the change atomically. Before it adds to the configuration of a client, it copies
// the old file, and it removes the copy with the last entry. After an error the file is
// unchanged. A nil change has no result.
func (f *Change) Write() (*Result, error) {
	if f == nil {
		return nil, nil
	}
	r := &Result{Path: f.Path}
	if !f.Changes() {
		return r, nil
	}
	if now, err := f.read(); err != nil || !bytes.Equal(now, f.Old) {
		return nil, errors.Join(fmt.Errorf("%s has changed meanwhile; run the command again", f.Path), err)
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if f.record != nil && !f.removes {
		if err := f.record.save(); err != nil {
			return nil, fmt.Errorf("keeping a copy of %s: %w", f.Path, err)
		}
		if f.record.before != nil {
			r.Backup = f.record.copy
		}
	}
	if f.New != nil {
		mode := fs.FileMode(0o644) // a guide is an ordinary document
		if f.private {
			mode = 0o600
		}
		err = atomicfile.WriteIn(dir, f.name, f.New, mode)
	} else {
		err = remove(dir, f.name)
	}
	if err != nil {
		return nil, err
	}
	r.Changed = true
	if f.removes {
		err = f.record.drop(f.dropped)
	}
	return r, err
}

// remove removes a file and then the empty folders above it in dir.
func remove(dir *os.Root, name string) error {
	if err := dir.Remove(name); err != nil {
		return err
	}
	for parent := path.Dir(filepath.ToSlash(name)); parent != "."; parent = path.Dir(parent) {
		info, err := dir.Lstat(filepath.FromSlash(parent))
		if err != nil || !info.IsDir() || dir.Remove(filepath.FromSlash(parent)) != nil {
			break // a link, or not empty
		}
	}
	return nil
}
