// Package minilm contains the built-in sentence encoder: all-MiniLM-L6-v2, quantised to
// 8 bits by quantize.py, with its tokenizer. SOURCE.md documents the origin of the files.
// Package bert is the engine that runs the model.
package minilm

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
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
	//go:embed SHA256SUMS
	sums string
)

// Weights returns the bytes of model.onnx, 23 MB. The caller must not modify them.
func Weights() []byte { return weights }

// TokenizerJSON returns the bytes of tokenizer.json. The caller must not modify them.
func TokenizerJSON() []byte { return tokenizer }

// digests are SHA-256 sums of the embedded files.
type digests struct{ weights, tokenizer, all [sha256.Size]byte }

// digest hashes the files once per process, which takes about 13 ms.
var digest = sync.OnceValue(func() (d digests) {
	h := sha256.New()
	h.Write(weights)
	h.Sum(d.weights[:0])
	h.Write(tokenizer)
	h.Sum(d.all[:0])
	d.tokenizer = sha256.Sum256(tokenizer)
	return d
})

// Verify checks the embedded files against the published checksums. The error
// names the file that differs.
func Verify() error {
	d := digest()
	if err := verify(sums, "model.onnx", d.weights); err != nil {
		return err
	}
	return verify(sums, "tokenizer.json", d.tokenizer)
}

// verify compares a digest with the line of file in sums, which has the format
// of sha256sum.
func verify(sums, file string, digest [sha256.Size]byte) error {
	got := hex.EncodeToString(digest[:])
	for line := range strings.Lines(sums) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if name != file {
			continue
		}
		if got != want {
			return fmt.Errorf("embedded model: %s is corrupted: SHA-256 %s, want %s", file, got, want)
		}
		return nil
	}
	return fmt.Errorf("embedded model: SHA256SUMS does not list %s", file)
}

// Description returns the description of the model. Its ID is computed from the embedded
// bytes, even if Verify fails for them.
func Description() models.Description {
	all := digest().all
	return models.Description{
		Name:          "all-MiniLM-L6-v2",
		Dimension:     384,
		MaxTokens:     256, // the published max_seq_length
		Pooling:       "mean",
		MinSimilarity: .3,
	}.WithID(hex.EncodeToString(all[:]))
}

// Open verifies the embedded files and returns the native engine running them.
// It ignores TokenizerJSON, Digest and Heads in opts.
func Open(opts *bert.Options) (*bert.Encoder, error) {
	if err := Verify(); err != nil {
		return nil, err
	}
	tok, err := wordpiece.New(tokenizer)
	if err != nil {
		return nil, fmt.Errorf("embedded model: %w", err)
	}
	o := bert.Options{}
	if opts != nil {
		o = *opts
	}
	all := digest().all
	o.TokenizerJSON, o.Digest, o.Heads = tokenizer, hex.EncodeToString(all[:]), 12
	enc, err := bert.New(weights, tok, Description(), &o)
	if err != nil {
		return nil, fmt.Errorf("embedded model: %w", err)
	}
	// The encoder has its own copy of everything but the word embeddings.
	release(weights)
	release(tokenizer)
	return enc, nil
}
