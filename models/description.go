package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxDescription bounds cairn.json, in bytes.
const maxDescription = 1 << 16

// ReadDescription reads the description of the model in folder dir from its
// cairn.json. All fields of Description are optional there. If the file or its
// name is absent, Name is that of the folder. An unknown field is an
// error, since a misspelt setting would give wrong vectors.
func ReadDescription(dir string) (d Description, err error) {
	path := filepath.Join(dir, "cairn.json")
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return d, fmt.Errorf("reading model description: %w", err)
	case len(b) > maxDescription:
		return d, fmt.Errorf("reading model description %s: %d bytes, want at most %d", path, len(b), maxDescription)
	default:
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&d); err != nil {
			return Description{}, fmt.Errorf("reading model description %s: %w", path, err)
		}
	}
	if d.Name == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return Description{}, fmt.Errorf("reading model description: %w", err)
		}
		d.Name = filepath.Base(abs)
	}
	return d, nil
}
