package bert

import (
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

// Open returns the encoder in folder dir, which holds model.onnx,
// tokenizer.json and, if the defaults do not fit, cairn.json. All its
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
// By default the name is that of the folder, the dimension and the longest input
// are those of the weights, pooling is "mean", there are no prefixes, and
// min_similarity is 0. An unknown field, or a value that does not fit the
// weights, is an error.
func Open(dir string, opts *Options) (*Encoder, error) {
	desc, err := models.ReadDescription(dir)
	if err != nil {
		return nil, fmt.Errorf("opening model: %w", err)
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
