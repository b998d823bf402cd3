package bert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cairn/models"
	"cairn/models/wordpiece"
)

// The files of a model folder.
const (
	weightsFile     = "model.onnx"
	tokenizerFile   = "tokenizer.json"
	descriptionFile = "cairn.json"
)

// maxDescription bounds cairn.json, in bytes.
const maxDescription = 1 << 16

// Open returns the encoder in folder dir, which holds model.onnx,
// tokenizer.json and, where the defaults do not fit, cairn.json. All its
// fields are optional; this one describes BAAI/bge-small-en-v1.5:
//
//	{
//	  "name": "bge-small-en-v1.5",
//	  "dimension": 384,
//	  "max_tokens": 512,
//	  "pooling": "cls",
//	  "query_prefix": "Represent this sentence for searching relevant passages: ",
//	  "document_prefix": "",
//	  "min_similarity": 0.5
//	}
//
// Without it the name is the folder's, the dimension and the longest input
// are those of the weights, pooling is "mean", there are no prefixes, and
// min_similarity is 0. An unknown field or a value that does not fit the
// weights is an error.
func Open(dir string, opts *Options) (*Encoder, error) {
	desc, err := readDescription(dir)
	if err != nil {
		return nil, err
	}
	tokenizer, err := os.ReadFile(filepath.Join(dir, tokenizerFile))
	if err != nil {
		return nil, fmt.Errorf("opening model: %w", err)
	}
	tok, err := wordpiece.New(tokenizer)
	if err != nil {
		return nil, fmt.Errorf("opening model %s: %w", dir, err)
	}
	weights, err := os.ReadFile(filepath.Join(dir, weightsFile))
	if err != nil {
		return nil, fmt.Errorf("opening model: %w", err)
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	o.TokenizerJSON, o.Digest = tokenizer, ""
	return New(weights, tok, desc, &o)
}

func readDescription(dir string) (d models.Description, err error) {
	path := filepath.Join(dir, descriptionFile)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return d, fmt.Errorf("opening model: %w", err)
	case len(b) > maxDescription:
		return d, fmt.Errorf("opening model: %s has %d bytes, want at most %d", path, len(b), maxDescription)
	default:
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&d); err != nil {
			return d, fmt.Errorf("opening model: reading %s: %w", path, err)
		}
	}
	if d.Name == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return d, fmt.Errorf("opening model: %w", err)
		}
		d.Name = filepath.Base(abs)
	}
	return d, nil
}
