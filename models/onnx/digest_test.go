package onnx

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDigestCoversExternalTensors uses folders whose names are patterns of package filepath.
func TestDigestCoversExternalTensors(t *testing.T) {
	for _, folder := range []string{"plain", "bge[v1]", "bge[", "bge*"} {
		dir := filepath.Join(t.TempDir(), folder)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		weights := filepath.Join(dir, "model.onnx")
		write("model.onnx", "graph")
		for _, name := range []string{"model.onnx_data", "model.onnx.data"} {
			write(name, "one")
			before, err := digestOf(weights, []byte("tokenizer"))
			if err != nil {
				t.Errorf("%s: %v", folder, err)
				continue
			}
			write(name, "two")
			if after, err := digestOf(weights, []byte("tokenizer")); err != nil || after == before {
				t.Errorf("%s: the digest is %s, %v before and after %s changed", folder, after, err, name)
			}
		}
	}
}
