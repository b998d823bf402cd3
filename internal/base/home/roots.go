package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cairn/internal/base/atomicfile"
	"cairn/internal/base/checksum"
)

// rootsFile holds the further folders that are searched with a folder. It is outside the
// folder, so that it cannot come with the folder. rootsCopy is a second copy, written first.
const (
	rootsFile = "roots.json"
	rootsCopy = "roots.json.copy"
)

// roots is the content of rootsFile: absolute paths by name, the number of the change, and a
// checksum.
type roots struct {
	Change int               `json:"change"`
	Roots  map[string]string `json:"roots"`
	Sum    uint32            `json:"sum"`
}

func (r roots) sum() uint32 {
	r.Sum = 0
	text, _ := json.Marshal(r) // plain fields
	return checksum.Of(text)
}

// Roots returns the further folders of p by name.
func (p Place) Roots() (map[string]string, error) {
	r, err := p.roots()
	return r.Roots, err
}

// roots returns the newest undamaged content of both files.
func (p Place) roots() (newest roots, err error) {
	newest.Roots = map[string]string{}
	var damaged error
	found := false
	for _, name := range []string{rootsFile, rootsCopy} {
		path := filepath.Join(p.Records, name)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var r roots
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err == nil && r.Sum != r.sum() {
			err = errors.New("its checksum is wrong")
		}
		if err != nil {
			damaged = fmt.Errorf("%s is damaged; remove it, and add the folders again with `cairn roots add`: %w", path, err)
		} else if !found || r.Change > newest.Change {
			newest, found = r, true
		}
	}
	if found {
		damaged = nil
	}
	return newest, damaged
}

// SetRoots replaces the further folders of p.
func (p Place) SetRoots(list map[string]string) error {
	if err := p.Make(); err != nil {
		return err
	}
	before, _ := p.roots() // damaged files are replaced
	r := roots{Change: before.Change + 1, Roots: list}
	r.Sum = r.sum()
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	for _, name := range []string{rootsCopy, rootsFile} {
		path := filepath.Join(p.Records, name)
		if err := replaceable(path); err != nil {
			return err
		}
		if err := atomicfile.Write(path, append(text, '\n'), 0o600); err != nil {
			return err
		}
	}
	return nil
}
