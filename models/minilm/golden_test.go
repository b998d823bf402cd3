package minilm

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"cairn/models/bert"
)

// TestGolden compares every kernel with the vectors that ONNX Runtime computes from the
// published float32 weights, for testdata/golden.jsonl, where half of the texts are
// unusual, and for minilm/reference.jsonl in the folder CAIRN_REFERENCE, if that is set.
// The cosine must be .9985 on average and .993 at worst. AVX2 rounds the weights to fewer
// bits and may be .001 lower on the unusual texts.
func TestGolden(t *testing.T) {
	least := map[string]float64{filepath.Join("testdata", "golden.jsonl"): .998}
	if dir := os.Getenv("CAIRN_REFERENCE"); dir != "" {
		least[filepath.Join(dir, "minilm", "reference.jsonl")] = .9985
	}
	for _, kernel := range []string{"amx", "avx512vnni", "avx2", "neon", "portable"} {
		t.Run(kernel, func(t *testing.T) {
			e, err := Open(&bert.Options{Kernel: kernel})
			if err != nil {
				t.Skipf("kernel %s is untested on this machine: %v", kernel, err)
			}
			defer e.Close()
			for file, average := range least {
				texts, want := golden(t, file)
				got, err := e.EmbedDocuments(t.Context(), texts)
				if err != nil {
					t.Fatal(err)
				}
				mean, worst, at := 0.0, 1.0, 0
				for i, v := range got {
					cosine := dot(v, want[i])
					mean += cosine / float64(len(got))
					if cosine < worst {
						worst, at = cosine, i
					}
				}
				t.Logf("%s: %d texts, cosine to float32 %.4f on average, %.4f at worst", filepath.Base(file), len(got), mean, worst)
				if mean < average || worst < .993 {
					t.Errorf("%s: cosine %.4f on average, %.4f at worst (%.40q), want %.4f and .993", file, mean, worst, texts[at], average)
				}
			}
		})
	}
}

// golden reads texts and their vectors, base64 of little-endian float32s.
func golden(t *testing.T, file string) (texts []string, vectors [][]float32) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			Text string `json:"text"`
			FP32 []byte `json:"fp32"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		v := make([]float32, len(l.FP32)/4)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(l.FP32[4*i:]))
		}
		texts, vectors = append(texts, l.Text), append(vectors, v)
	}
	if err := lines.Err(); err != nil || len(texts) < 12 {
		t.Fatalf("%s: %d texts, %v", file, len(texts), err)
	}
	return texts, vectors
}
