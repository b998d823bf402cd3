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

// maxDescription is the maximum size of cairn.json in bytes.
const maxDescription = 1 << 16

// ErrPooling reports that no file in a model's folder specifies the pooling.
var ErrPooling = errors.New(`no file specifies how to pool the vectors of the tokens: copy modules.json and 1_Pooling/config.json from where the model is published, or write {"pooling":"mean"} or {"pooling":"cls"} to cairn.json`)

// ReadDescription reads the description of the model in folder dir from the files that
// sentence-transformers writes (modules.json and the pooling module in it,
// sentence_bert_config.json, config_sentence_transformers.json), and then from cairn.json,
// where all fields of Description are optional. Without a name in cairn.json, Name is the
// name of the folder. An unknown field of cairn.json is an error, since a misspelt setting
// would give wrong vectors. Pooling is "" if no file specifies it, since a guess could
// give wrong vectors, too.
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
