package flat

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/store"
)

var centres = func() [][]float32 {
	rng := rand.New(rand.NewPCG(7, 7))
	c := make([][]float32, 200)
	for i := range c {
		c[i] = normal(rng, 384, nil)
	}
	return c
}()

// normal returns a random unit vector, around centre if there is one.
func normal(rng *rand.Rand, dim int, centre []float32) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
		if centre != nil {
			v[i] += 20 * centre[i] // cosines of about 0.5 within a cluster, as related texts have
		}
	}
	return normalise(v)
}

func normalise(v []float32) []float32 {
	norm := math.Sqrt(dot(v, v))
	for i := range v {
		v[i] = float32(float64(v[i]) / norm)
	}
	return v
}

func clustered(rng *rand.Rand, i int) []float32 { return normal(rng, 384, centres[i%len(centres)]) }

// synthetic opens a store of n clustered vectors, ten to a document.
func synthetic(tb testing.TB, dir string, n int) *Store {
	tb.Helper()
	s := open(tb, dir, 384, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	pool := make([][]float32, 2048)
	for i := range pool {
		pool[i] = clustered(rng, i)
	}
	for i := 0; i < n; {
		var entries []store.VectorEntry
		for ; i < n && len(entries) < 2048; i++ {
			path := fmt.Sprintf("reference/part-%d/page-%05d.md", i/10%50, i/10)
			v := append([]float32(nil), pool[i%len(pool)]...)
			for range 24 { // different from its origin
				v[rng.IntN(len(v))] = rng.Float32()/5 - 0.1
			}
			entries = append(entries, store.VectorEntry{
				Chunk: store.ChunkID(path, fmt.Sprintf("some-heading-%d", i%10), 0), Path: path, Vector: normalise(v),
				Labels: store.Labels{Found: true, Tags: []string{fmt.Sprint(i / 10 % 7)}},
			})
		}
		if err := s.Update(tb.Context(), entries, nil); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

func search(tb testing.TB, s *Store, query []float32, k int) []store.Hit {
	tb.Helper()
	hits, err := s.Search(tb.Context(), query, k, store.Filter{})
	if err != nil {
		tb.Fatal(err)
	}
	return hits
}

// reference returns the float32 vectors of the reference file, and skips the
// test when it is absent.
func reference(t *testing.T) [][]float32 {
	dir := os.Getenv("CAIRN_REFERENCE")
	if dir == "" {
		t.Skip("CAIRN_REFERENCE is not set: the reference vectors are not part of the repository")
	}
	f, err := os.Open(filepath.Join(dir, "minilm", "reference.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var vectors [][]float32
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ FP32 string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		b, err := base64.StdEncoding.DecodeString(line.FP32)
		if err != nil {
			t.Fatal(err)
		}
		v := make([]float32, len(b)/4)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		vectors = append(vectors, normalise(v))
	}
	if err := lines.Err(); err != nil || len(vectors) == 0 {
		t.Fatalf("%d reference vectors, %v", len(vectors), err)
	}
	return vectors
}
