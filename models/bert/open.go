package bert

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"cairn/models"
	"cairn/models/wordpiece"
)

// The files of a model folder.
const (
	weightsFile   = "model.onnx"
	tokenizerFile = "tokenizer.json"
)

// Open returns the encoder in folder dir, which contains model.onnx, tokenizer.json, and
// the files of sentence-transformers or cairn.json, which has precedence: see
// models.ReadDescription. This cairn.json describes BAAI/bge-small-en-v1.5:
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
// By default, the name is that of the folder, the dimension and the longest input are
// those of the weights, there are no prefixes, and the scale of similarities is measured.
// Open fails if no file specifies the pooling, if cairn.json has an unknown field, or if a
// value does not fit the weights.
func Open(dir string, opts *Options) (*Encoder, error) {
	desc, err := models.ReadDescription(dir)
	if err != nil {
		return nil, fmt.Errorf("opening model: %w", err)
	}
	if desc.Pooling == "" {
		return nil, fmt.Errorf("opening model %s: %w", dir, models.ErrPooling)
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
	o := *cmp.Or(opts, &Options{})
	o.TokenizerJSON, o.Digest = tokenizer, ""
	e, err := New(weights, tok, desc, &o)
	if err != nil {
		return nil, err
	}
	if e.description.Unrelated == 0 {
		e.description.Unrelated, err = models.Baseline(context.Background(), e)
	}
	return e, err
}
