package connect

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/home"
)

// record is what Add remembers about a file, so that Drop can restore it byte for byte: a copy
// of the file before the first entry of cairn, and the entries since then. It is in a private
// directory of the user, outside the folder.
type record struct {
	dir, copy string // of this record, and of the copy in it

	before []byte  // nil if the file did not exist
	Path   string  `json:"path"`
	Added  []added `json:"added,omitempty"`
	Wrote  string  `json:"wrote,omitempty"` // hash of a file that cairn has written as a whole
}

// added is an entry that Add has written. Force means that it replaced another one. Moved are
// the servers that Add has removed.
type added struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Force   bool     `json:"force,omitempty"`
	Moved   []string `json:"moved,omitempty"`
}

// merge returns a file after Add.
func (a *added) merge(c Client, path string, text []byte) (_ []byte, err error) {
	for _, name := range a.Moved {
		if text, err = c.set(path, text, name, nil); err != nil {
			return nil, err
		}
	}
	return c.Merge(path, text, a.Name, Entry{a.Command, a.Args, c.format}, a.Force)
}

func sumOf(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

// recordFile is the name of the JSON of a record in its directory.
const recordFile = "record.json"

// openRecord reads the record of a file below copies. It is empty if there is none.
func openRecord(copies, path string) (*record, error) {
	dir := filepath.Join(copies, sumOf([]byte(path))[:16])
	r := &record{dir: dir, copy: filepath.Join(dir, "before-"+filepath.Base(path)), Path: path}
	text, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err == nil {
		if r.before, err = os.ReadFile(r.copy); errors.Is(err, fs.ErrNotExist) {
			r.before, err = nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading what cairn remembers about %s: %w; remove %s", path, err, dir)
	}
	return r, nil
}

// save writes the record.
func (r *record) save() error {
	if err := home.Private(r.dir); err != nil {
		return err
	}
	if r.before != nil {
		if err := atomicfile.Write(r.copy, r.before, 0o600); err != nil {
			return err
		}
	}
	text, _ := json.Marshal(r) // never fails: strings marshal
	return atomicfile.Write(filepath.Join(r.dir, recordFile), text, 0o600)
}

// with returns the file with the entries: the copy if there are none.
func (r *record) with(c Client, entries []added) (text []byte, err error) {
	text = r.before
	for _, a := range entries {
		if text, err = a.merge(c, r.Path, text); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// describes reports whether text is the copy with the recorded entries, so that nothing else
// has changed the file.
func (r *record) describes(c Client, text []byte) bool {
	now, err := r.with(c, r.Added)
	return err == nil && len(r.Added) > 0 && bytes.Equal(now, text)
}

// add records an entry that is about to be written to the file, whose content is old. An entry
// that it updates is not part of the copy.
func (r *record) add(c Client, old []byte, a added, update bool) (err error) {
	if !r.describes(c, old) {
		if update {
			if old, err = c.set(r.Path, old, a.Name, nil); err != nil {
				return err
			}
		}
		// Without the entries that have moved servers, which only the copy has.
		moving := slices.DeleteFunc(r.Added, func(a added) bool { return len(a.Moved) == 0 })
		for _, a := range moving {
			if old, err = c.set(r.Path, old, a.Name, nil); err == nil {
				old, err = r.returned(c, old, a.Name)
			}
			if err != nil {
				return err
			}
		}
		r.before, r.Added = old, moving
	}
	r.Added = append(r.Added, a)
	return nil
}

// returned returns the file with the servers that the named entry has moved.
func (r *record) returned(c Client, text []byte, name string) (_ []byte, err error) {
	for _, a := range r.Added {
		for _, moved := range a.Moved {
			entry := c.entryText(r.before, moved)
			if a.Name != name || entry == nil || c.servers(text)[moved] != nil {
				continue
			}
			if text, err = c.set(r.Path, text, moved, entry); err != nil {
				return nil, err
			}
		}
	}
	return text, nil
}

// drop removes an entry from the record, and after the last one the record.
func (r *record) drop(name string) error {
	r.Added = slices.DeleteFunc(r.Added, func(a added) bool { return a.Name == name })
	if len(r.Added) == 0 {
		return os.RemoveAll(r.dir)
	}
	return r.save()
}
