package bert

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// A referenceText is a line of a reference file: a text, its ids, and vectors
// computed by ONNX Runtime as base64 of little-endian float32s.
type referenceText struct {
	Text string  `json:"text"`
	IDs  []int32 `json:"ids"`
	FP32 []byte  `json:"fp32"`
	Int8 []byte  `json:"int8"`
}

// reference reads a reference file below CAIRN_REFERENCE, or skips the test.
func reference(t testing.TB, name string) []referenceText {
	dir := os.Getenv("CAIRN_REFERENCE")
	if dir == "" {
		t.Skip("CAIRN_REFERENCE is not set: no reference vectors")
	}
	f, err := os.Open(filepath.Join(dir, name, "reference.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []referenceText
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<22)
	for s.Scan() {
		var r referenceText
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func decode(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// folder returns a model's folder below CAIRN_MODELS, or skips the test.
func folder(t testing.TB, name string) string {
	dir := os.Getenv("CAIRN_MODELS")
	if dir == "" {
		t.Skip("CAIRN_MODELS is not set: no model folders")
	}
	return filepath.Join(dir, name)
}

// describe makes a copy of a model folder (by links) with a description.
func describe(t testing.TB, from, description string) string {
	dir := t.TempDir()
	for _, name := range []string{weightsFile, tokenizerFile} {
		if err := os.Symlink(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, descriptionFile), []byte(description), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

const minilmDescription = `{"name": "all-MiniLM-L6-v2", "max_tokens": 256}`

const bgeDescription = `{"name": "bge-small-en-v1.5", "max_tokens": 512, "pooling": "cls",
	"query_prefix": "Represent this sentence for searching relevant passages: ", "min_similarity": 0.5}`

func open(t testing.TB, model, description, kernel string) *Encoder {
	e, err := Open(describe(t, folder(t, model), description), &Options{Kernel: kernel})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// cosine is computed in float64; both vectors are unit vectors.
func cosine(a, b []float32) float64 {
	var dot, x, y float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		x += float64(a[i]) * float64(a[i])
		y += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(x*y)
}

// eachKernel runs f for every kernel there is, naming those untested here.
func eachKernel(t *testing.T, f func(t *testing.T, kernel string)) {
	for _, name := range []string{"avx512vnni", "avx2", "portable"} {
		t.Run(name, func(t *testing.T) {
			if _, err := chooseKernel(name); err != nil {
				t.Skipf("untested: %v", err)
			}
			f(t, name)
		})
	}
}

// every returns each nth element of s.
func every[T any](s []T, n int) (out []T) {
	for i := 0; i < len(s); i += n {
		out = append(out, s[i])
	}
	return out
}

func TestReference(t *testing.T) {
	for _, c := range []struct {
		model, reference, description string
		want                          func(referenceText) []byte
		mean, worst                   float64
	}{
		{"all-MiniLM-L6-v2", "minilm", minilmDescription, func(r referenceText) []byte { return r.FP32 }, 0.996, 0.985},
		{"bge-small-en-v1.5", "bge-small", bgeDescription, func(r referenceText) []byte { return r.Int8 }, 0.98, 0.9},
	} {
		t.Run(c.reference, func(t *testing.T) {
			lines := reference(t, c.reference)
			var texts []string
			for _, l := range lines {
				texts = append(texts, l.Text)
			}
			eachKernel(t, func(t *testing.T, kernel string) {
				lines, texts := lines, texts
				if testing.Short() && kernel == "portable" {
					lines, texts = every(lines, 25), every(texts, 25)
				}
				got, err := open(t, c.model, c.description, kernel).EmbedDocuments(t.Context(), texts)
				if err != nil {
					t.Fatal(err)
				}
				sum, worst, at := 0.0, 2.0, 0
				for i, l := range lines {
					v := cosine(got[i], decode(c.want(l)))
					sum += v
					if v < worst {
						worst, at = v, i
					}
				}
				mean := sum / float64(len(lines))
				t.Logf("cosine: mean %.5f, worst %.5f (%d pieces)", mean, worst, len(lines[at].IDs))
				if !(mean >= c.mean) || !(worst >= c.worst) {
					t.Errorf("cosine: mean %.5f, want >= %v; worst %.5f (text %d), want >= %v", mean, c.mean, worst, at, c.worst)
				}
			})
		})
	}
}
