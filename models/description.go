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

// ErrPooling says that no file of a model's folder says how token vectors are pooled.
var ErrPooling = errors.New(`no file says how the vectors of the tokens become one: copy modules.json and 1_Pooling/config.json from where the model is published, or write {"pooling":"mean"} or {"pooling":"cls"} to cairn.json`)

// ReadDescription reads the description of the model in folder dir from the files that
// sentence-transformers writes (modules.json and the pooling module it names,
// sentence_bert_config.json, config_sentence_transformers.json), and then from cairn.json.
// All fields of Description are optional there. If the file or its
// name is absent, Name is that of the folder. An unknown field of cairn.json is an
// error, since a misspelt setting would give wrong vectors. Pooling is "" when no file
// says it: guessing would give wrong vectors, too.
func ReadDescription(dir string) (d Description, err error) {
	if err := d.readLayout(dir); err != nil {
		return Description{}, err
	}
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
