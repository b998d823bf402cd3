// Package minilm carries the sentence encoder that cairn ships:
// all-MiniLM-L6-v2, quantised to 8 bits, with its tokenizer. SOURCE.md says
// where the files come from. The package holds no engine: models/bert runs the
// model, models/onnx can.
package minilm

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"cairn/models"
)

// The embedded files stay where the linker put them, in read-only pages of the
// binary that are loaded when they are first read.
var (
	//go:embed model.onnx
	weights []byte
	//go:embed tokenizer.json
	tokenizer []byte
	//go:embed SHA256SUMS
	sums string
)

// Weights returns the bytes of model.onnx, 23 MB. They must not be written to.
func Weights() []byte { return weights }

// TokenizerJSON returns the bytes of tokenizer.json. They must not be written to.
func TokenizerJSON() []byte { return tokenizer }

// digests are the SHA-256 of the embedded files, computed once a process: it
// takes some 15 ms.
var digests = sync.OnceValue(func() [2][sha256.Size]byte {
	return [2][sha256.Size]byte{sha256.Sum256(weights), sha256.Sum256(tokenizer)}
})

// Verify checks the embedded files against the published checksums. The error
// names the file that differs.
func Verify() error {
	d := digests()
	if err := verify(sums, "model.onnx", d[0]); err != nil {
		return err
	}
	return verify(sums, "tokenizer.json", d[1])
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

// Description says how the model wants to be used. Its ID is that of the
// embedded bytes, verified or not.
func Description() models.Description {
	d := digests()
	return models.Description{
		Name:          "all-MiniLM-L6-v2",
		Dimension:     384,
		MaxTokens:     256, // the published max_seq_length
		Pooling:       "mean",
		MinSimilarity: .3,
	}.WithID(d[0], d[1])
}
