// Package minilm contains the built-in sentence encoder: all-MiniLM-L6-v2, quantised to
// 8 bits by quantize.py, with its tokenizer, and changes of its weights for requests
// and tools, and for symbols of source code. SOURCE.md documents the origin of the files.
// Package bert is the engine that runs the model.
package minilm

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"cairn/models"
	"cairn/models/bert"
	"cairn/models/wordpiece"
)

// The embedded files. They are pages of the binary, which are loaded when first read.
var (
	//go:embed model.onnx
	weights []byte
	//go:embed tokenizer.json
	tokenizer []byte
	//go:embed tools.lora
	toolChanges []byte
	//go:embed pairs.lora
	pairChanges []byte
	//go:embed symbols.lora
	symbolChanges []byte
	//go:embed SHA256SUMS
	sums string
)

// Weights returns the bytes of model.onnx, 23 MB. The caller must not modify them.
func Weights() []byte { return weights }

// TokenizerJSON returns the bytes of tokenizer.json. The caller must not modify them.
func TokenizerJSON() []byte { return tokenizer }

// fingerprint is the SHA-256 of model.onnx followed by tokenizer.json, and toolFingerprint that
// of both followed by tools.lora. They are constants so that a process that embeds nothing does
// not read 24 MB of its binary.
const (
	fingerprint     = "74a9e4a75bdc3fddd762d92d227d0c3f80bd9b0314a327f3f46268a8c5ea959c"
	toolFingerprint = "a3c942377a6445f53d3ee030d09bc9442b59579a8b3212285f1c611a918b678e"
)

// symbolPrefix contains the beginning of the SHA-256 of symbols.lora, so that an index has no
// vectors of other changes.
const symbolPrefix = "\x00symbols-ce97f02a6490\x00"

// Verify checks the embedded files against the published checksums, which takes about
// 13 ms. The error names the file that differs.
func Verify() error {
	for name, file := range map[string][]byte{"model.onnx": weights, "tokenizer.json": tokenizer, "tools.lora": toolChanges, "pairs.lora": pairChanges, "symbols.lora": symbolChanges} {
		if err := verify(sums, name, sha256.Sum256(file)); err != nil {
			return err
		}
	}
	return nil
}

// verify looks for the digest of a file in sums, which has the format of sha256sum.
func verify(sums, file string, digest [sha256.Size]byte) error {
	if !strings.Contains(sums, fmt.Sprintf("%x  %s\n", digest, file)) {
		return fmt.Errorf("embedded model: %s is corrupted: its SHA-256 %x is not in SHA256SUMS", file, digest)
	}
	return nil
}

// Description returns the description of the model. Its ID is made from the published
// files, even if Verify fails for the embedded ones.
func Description() models.Description {
	return models.Description{
		SymbolPrefix:  symbolPrefix,
		Name:          "all-MiniLM-L6-v2",
		Dimension:     384,
		MaxTokens:     256, // the published max_seq_length
		Pooling:       "mean",
		MinSimilarity: .3,
	}.WithID(fingerprint)
}

// ToolDescription returns the description of the model for requests and tools.
func ToolDescription() models.Description {
	d := Description()
	d.Name, d.MinSimilarity, d.SymbolPrefix = "all-MiniLM-L6-v2-tools", .4, ""
	return d.WithID(toolFingerprint)
}

// splitter splits text for all models of a process.
var splitter = sync.OnceValues(func() (*wordpiece.Tokenizer, error) {
	defer release(tokenizer)
	if err := verify(sums, "tokenizer.json", sha256.Sum256(tokenizer)); err != nil {
		return nil, err
	}
	return wordpiece.New(tokenizer)
})

// Tokenizer returns the tokenizer of the model of Description. It does not open the model.
func Tokenizer() (models.Tokenizer, error) {
	s, err := splitter()
	if err != nil {
		return nil, err
	}
	return bert.NewTokenizer(s, Description().MaxTokens), nil
}

// Open verifies the embedded files and returns the native engine running them.
// It ignores TokenizerJSON, Adapter and Digest in opts.
func Open(opts *bert.Options) (*bert.Encoder, error) {
	return open(opts, Description(), nil, fingerprint)
}

// OpenTools is Open for the model of ToolDescription. Its vectors of a request and of the tool
// for it are nearer to each other than those of Open: benchmarks/plans.md has the figures.
func OpenTools(opts *bert.Options) (*bert.Encoder, error) {
	return open(opts, ToolDescription(), toolChanges, toolFingerprint)
}

// OpenReader returns the model that reads requests to tools. It verifies the embedded files, and
// uses Threads and Kernel of opts.
func OpenReader(opts *bert.Options) (*bert.Reader, error) {
	var r *bert.Reader
	err := verified(func(tok wordpiece.Splitter) (err error) {
		r, err = bert.NewReader(weights, pairChanges, tok, opts)
		return err
	})
	return r, err
}

func open(opts *bert.Options, desc models.Description, adapter []byte, digest string) (*bert.Encoder, error) {
	o := *cmp.Or(opts, &bert.Options{})
	o.Adapter, o.Digest = adapter, digest
	if desc.SymbolPrefix != "" {
		o.Symbols = symbolChanges
	}
	var enc *bert.Encoder
	err := verified(func(tok wordpiece.Splitter) (err error) {
		enc, err = bert.New(weights, tok, desc, &o)
		return err
	})
	return enc, err
}

// verifyOnce is Verify, once for a process.
var verifyOnce = sync.OnceValue(Verify)

// verified verifies the embedded files and opens a model at the same time.
func verified(open func(tok wordpiece.Splitter) error) error {
	sound := make(chan error, 1)
	go func() { sound <- verifyOnce() }()
	tok, err := splitter()
	if err == nil {
		err = open(tok)
	}
	if damaged := <-sound; damaged != nil {
		return damaged
	}
	if err != nil {
		return fmt.Errorf("embedded model: %w", err)
	}
	// The model has its own copy of everything but the word embeddings.
	release(weights)
	return nil
}
