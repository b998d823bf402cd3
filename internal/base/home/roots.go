package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cairn/internal/base/atomicfile"
)

// rootsFile holds the names and absolute paths of the further folders that are searched with
// a folder. It is outside the folder, so that it cannot come with the folder.
const rootsFile = "roots.json"

// Roots returns the further folders of p by name.
func (p Place) Roots() (map[string]string, error) {
	path := filepath.Join(p.Records, rootsFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	} else if err != nil {
		return nil, err
	}
	roots := map[string]string{}
	if err := json.Unmarshal(text, &roots); err != nil {
		return nil, fmt.Errorf("%s is damaged; remove it, and add the folders again with `cairn roots add`: %w", path, err)
	}
	return roots, nil
}

// SetRoots replaces the further folders of p.
func (p Place) SetRoots(roots map[string]string) error {
	if err := p.Make(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(roots, "", "\t")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(p.Records, rootsFile), append(text, '\n'), 0o600)
}
