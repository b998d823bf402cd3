package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestCurrent: the committed assembly is what this generator writes. The first
// line holds the command, whose output differs here.
func TestCurrent(t *testing.T) {
	for kernel, file := range map[string]string{"avx512": "avx512_amd64.s", "avx2": "avx2_amd64.s", "neon": "neon_arm64.s"} {
		t.Run(kernel, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.s")
			if b, err := exec.CommandContext(t.Context(), "go", "run", ".", "-kernel", kernel, "-out", out).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, b)
			}
			got, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join("..", file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(body(got), body(want)) {
				t.Errorf("%s is not what the generator writes: run go generate ./models/bert", file)
			}
		})
	}
}

func body(b []byte) []byte {
	_, rest, _ := bytes.Cut(b, []byte("\n"))
	return rest
}
