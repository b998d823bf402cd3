// Package bert runs BERT sentence encoders. It supports ONNX files with float32 weights
// or with 8-bit weights from ONNX Runtime's dynamic quantisation, on kernels for AMX, AVX-512
// VNNI, AVX2, NEON or plain Go.
//
// It is not a general ONNX engine: it supports only post-norm graphs with exact gelu and
// absolute positions. Package onnx runs other models.
package bert

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"cairn/models"
	"cairn/models/wordpiece"
)

// Options configures an Encoder. Nil and zero mean the defaults.
type Options struct {
	// Threads is the number of texts embedded at the same time, by default
	// runtime.GOMAXPROCS(0).
	Threads int
	// Kernel is "amx", "avx512vnni", "avx2", "neon" or "portable". The default is the
	// value of the environment variable CAIRN_KERNEL, or else the fastest kernel of this
	// machine. A kernel that is unknown or not available on the machine is an error.
	Kernel string
	// TokenizerJSON is the tokenizer's file, for the model's ID.
	TokenizerJSON []byte
	// Adapter has changes of 8-bit weights as changes.py of package minilm writes them; nil
	// means none.
	Adapter []byte
	// Symbols has the changes for the texts that begin with the description's SymbolPrefix,
	// in the form of Adapter; nil means none.
	Symbols []byte
	// Digest, if not empty, is the SHA-256, in hex, of the weights followed by
	// TokenizerJSON and Adapter. New then does not hash them.
	Digest string
}

// An Encoder embeds text with one model. It implements models.Embedder.
type Encoder struct {
	model       *model
	symbols     func() (*model, error) // reads symbols; nil without Options.Symbols
	tokenizer   wordpiece.Splitter
	description models.Description
	threads     int
	scratch     pool[scratch]
	batches     pool[batch]
}

var _ models.Embedder = (*Encoder)(nil)

// New returns an encoder from the bytes of an ONNX file, its tokenizer and a description.
// The caller must not modify weights afterwards, because the encoder reads the word
// embeddings from it. desc must have a Name. Dimension defaults to the model's hidden
// size, MaxTokens to the number of its positions, and Pooling to "mean"; New computes ID.
// New fails if the file is not a supported encoder or the description does not fit it.
func New(weights []byte, tok wordpiece.Splitter, desc models.Description, opts *Options) (*Encoder, error) {
	opts = cmp.Or(opts, &Options{})
	k, err := chooseKernel(opts.Kernel)
	if err != nil {
		return nil, err
	}
	// Hashing takes as long as packing, so both run concurrently.
	digest := make(chan string, 1)
	go func() { digest <- digestOf(weights, opts) }()
	m, own, err := load(weights, opts.Adapter, k)
	if own != nil {
		tok = own
	}
	sum := <-digest
	if err != nil {
		return nil, fmt.Errorf("reading model %s: %w", desc.Name, err)
	}
	if err := complete(&desc, m); err != nil {
		return nil, fmt.Errorf("describing model %q: %w", desc.Name, err)
	}
	if n := tok.VocabSize(); n > m.words.rows {
		return nil, fmt.Errorf("reading model %s: the tokenizer has ids up to %d, the model %d words", desc.Name, n-1, m.words.rows)
	}
	if opts.Symbols == nil {
		desc.SymbolPrefix = ""
	} else if desc.SymbolPrefix == "" {
		return nil, fmt.Errorf("describing model %q: changes for symbols need a prefix", desc.Name)
	}
	e := &Encoder{model: m, tokenizer: tok, description: desc.WithID(sum), threads: opts.threads()}
	if opts.Symbols != nil {
		e.symbols = sync.OnceValues(func() (*model, error) {
			m, _, err := load(weights, opts.Symbols, k)
			return m, err
		})
	}
	return e, nil
}

func (o *Options) threads() int {
	if o.Threads > 0 {
		return o.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// load reads an ONNX file, or a packed file with its tokenizer.
func load(weights, adapter []byte, k *kernel) (m *model, tok wordpiece.Splitter, err error) {
	var n *network
	if bytes.HasPrefix(weights, []byte(PackedMagic)) {
		n, tok, err = readPacked(weights)
	} else {
		var g *graph
		if g, err = parseONNX(weights); err == nil {
			n, err = readNetwork(g, matchNetwork)
		}
	}
	if err == nil && adapter != nil {
		err = n.adapt(adapter, k)
	}
	if err != nil {
		return nil, nil, err
	}
	m, err = newModel(n, k)
	return m, tok, err
}

func digestOf(weights []byte, opts *Options) string {
	if opts.Digest != "" {
		return opts.Digest
	}
	h := sha256.New()
	h.Write(weights)
	h.Write(opts.TokenizerJSON)
	h.Write(opts.Adapter)
	return hex.EncodeToString(h.Sum(nil))
}

// complete sets the defaults of d and returns an error if d contradicts m.
func complete(d *models.Description, m *model) error {
	d.Dimension = cmp.Or(d.Dimension, m.hidden)
	if d.Dimension != m.hidden {
		return fmt.Errorf("dimension %d, the weights have %d", d.Dimension, m.hidden)
	}
	if d.MaxTokens > m.longest {
		return fmt.Errorf("max_tokens %d, want 2 to the %d positions of the model", d.MaxTokens, m.longest)
	}
	return d.Complete(m.longest)
}

// The files of a model folder.
const (
	weightsFile   = "model.onnx"
	tokenizerFile = "tokenizer.json"
	// PackedFile holds 4-bit weights with their tokenizer, in place of both.
	PackedFile = "model.e5s1"
)

// readFolder reads the weights and the tokenizer in a model's folder.
func readFolder(dir string) (weights, tokenizer []byte, tok wordpiece.Splitter, err error) {
	if weights, err = os.ReadFile(filepath.Join(dir, PackedFile)); err == nil {
		return weights, nil, nil, nil
	}
	if tokenizer, err = os.ReadFile(filepath.Join(dir, tokenizerFile)); err == nil {
		tok, err = wordpiece.Open(tokenizer)
	}
	if err == nil {
		weights, err = os.ReadFile(filepath.Join(dir, weightsFile))
	}
	return weights, tokenizer, tok, err
}

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
	weights, tokenizer, tok, err := readFolder(dir)
	if err == nil && desc.Pooling == "" {
		err = models.ErrPooling
	}
	if err != nil {
		return nil, fmt.Errorf("opening model %s: %w", dir, err)
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
