package minilm

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"

	"cairn/models/wordpiece"
)

func TestVerify(t *testing.T) {
	if err := Verify(); err != nil {
		t.Errorf("Verify() = %v", err)
	}
}

func TestCorruptedFileIsRefusedByName(t *testing.T) {
	for name, file := range map[string][]byte{"model.onnx": Weights(), "tokenizer.json": TokenizerJSON()} {
		if err := verify(sums, name, sha256.Sum256(file)); err != nil {
			t.Errorf("verify(%s) = %v", name, err)
		}
		broken := bytes.Clone(file)
		broken[len(broken)/2] ^= 1
		for what, b := range map[string][]byte{"one bit flipped": broken, "last byte missing": file[:len(file)-1], "empty": nil} {
			err := verify(sums, name, sha256.Sum256(b))
			if err == nil || !strings.Contains(err.Error(), name+" is corrupted") {
				t.Errorf("verify(%s, %s) = %v, want an error that names the file", name, what, err)
			}
		}
	}
	if err := verify(sums, "other.onnx", [sha256.Size]byte{}); err == nil || !strings.Contains(err.Error(), "other.onnx") {
		t.Errorf("verify of an unlisted file = %v, want an error that names it", err)
	}
}

func TestDescription(t *testing.T) {
	d := Description()
	// An index is bound to this ID: a change makes every index of the shipped
	// model stale.
	if got, want := d.ID, "all-MiniLM-L6-v2@c80a7a687989"; got != want {
		t.Errorf("ID = %q, want %q", got, want)
	}
	if d.Dimension != 384 || d.MaxTokens != 256 || d.Pooling != "mean" || d.MinSimilarity != .3 {
		t.Errorf("Description() = %+v", d)
	}
}

func TestTokenizerBelongsToTheWeights(t *testing.T) {
	tok, err := wordpiece.New(TokenizerJSON())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tok.VocabSize(), 30522; got != want {
		t.Errorf("VocabSize() = %d, want %d", got, want)
	}
}

func BenchmarkVerify(b *testing.B) {
	b.SetBytes(int64(len(weights)))
	for b.Loop() {
		sha256.Sum256(weights)
	}
}
