package vectorcache

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const dim = 5

func open(t testing.TB, path string, o *Options) *Cache {
	t.Helper()
	c, err := Open(path, "model@1", dim, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// vector is the one that belongs to text in these tests.
func vector(text string) []float32 {
	key := KeyOf(text)
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(key[i]) / 7
	}
	v[0] = math.Float32frombits(0x80000000) // -0, which must stay -0
	return v
}

func put(t *testing.T, c *Cache, texts ...string) {
	t.Helper()
	var keys []Key
	var vectors [][]float32
	for _, text := range texts {
		keys, vectors = append(keys, KeyOf(text)), append(vectors, vector(text))
	}
	if err := c.Put(keys, vectors); err != nil {
		t.Fatal(err)
	}
}

// known returns which of texts have a vector, after comparing it bit by bit.
func known(t *testing.T, c *Cache, texts ...string) string {
	t.Helper()
	keys := make([]Key, len(texts))
	for i, text := range texts {
		keys[i] = KeyOf(text)
	}
	vectors, err := c.Get(keys)
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for i, v := range vectors {
		if v == nil {
			continue
		}
		known = append(known, texts[i])
		for j, x := range vector(texts[i]) {
			if math.Float32bits(x) != math.Float32bits(v[j]) {
				t.Errorf("%q: %v, want %v", texts[i], v, vector(texts[i]))
			}
		}
	}
	return strings.Join(known, " ")
}

func TestPutGet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "cache")
	c := open(t, path, nil)
	put(t, c, "a", "b", "a")
	put(t, c, "b", "c")
	put(t, c)
	for _, c := range []*Cache{c, open(t, path, nil)} { // the second sees what a killed process leaves
		if got := known(t, c, "c", "x", "a", "b", "a"); got != "c a b a" {
			t.Errorf("known: %q, want %q", got, "c a b a")
		}
		if n := c.Count(); n != 3 {
			t.Errorf("Count: %d, want 3", n)
		}
	}
}

func TestPutRefuses(t *testing.T) {
	c := open(t, filepath.Join(t.TempDir(), "cache"), nil)
	nan := slices.Repeat([]float32{float32(math.NaN())}, dim)
	for name, v := range map[string][]float32{"short": {1}, "NaN": nan, "none": nil} {
		if err := c.Put([]Key{KeyOf("a"), KeyOf("b")}, [][]float32{vector("a"), v}); err == nil {
			t.Errorf("Put accepted a %s vector", name)
		}
	}
	if err := c.Put([]Key{KeyOf("a")}, nil); err == nil {
		t.Error("Put accepted a key without a vector")
	}
	if got := known(t, c, "a", "b"); got != "" {
		t.Errorf("after refused puts: %q is known", got)
	}
}

func TestGenerations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	c := open(t, path, &Options{MaxEntries: 6})
	put(t, c, "a", "b")
	put(t, c, "c", "d") // fills three and turns
	if got := known(t, c, "a", "b", "c", "d"); got != "a b c d" {
		t.Errorf("two generations: %q", got)
	}
	put(t, c, "e", "f", "a") // turns: the first generation goes, what was put again stays
	if got := known(t, c, "a", "b", "c", "d", "e", "f"); got != "a d e f" {
		t.Errorf("after the second turn: %q, want %q", got, "a d e f")
	}
	c = open(t, path, &Options{MaxEntries: 6})
	if got := known(t, c, "a", "b", "c", "d", "e", "f"); got != "a d e f" {
		t.Errorf("after reopening: %q, want %q", got, "a d e f")
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprint(i))
	}
	put(t, c, many...)
	if n := c.Count(); n > 6 {
		t.Errorf("Count after 100 in one batch: %d, want at most 6", n)
	}
	if got := known(t, c, "97", "98", "99"); got == "" {
		t.Error("the last of 100 are not known")
	}
}

func TestOtherModelBeginsAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	c := open(t, path, nil)
	put(t, c, "a")
	c.Close()
	for _, other := range []struct {
		model string
		dim   int
	}{{"model@2", dim}, {"model@2", dim + 1}} {
		c, err := Open(path, other.model, other.dim, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := c.Count(); n != 0 {
			t.Errorf("%v: %d vectors of another model", other, n)
		}
		if err := c.Put([]Key{KeyOf("a")}, [][]float32{make([]float32, other.dim)}); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

// TestCut opens the file cut at every length, as a kill or a power failure may
// leave it: what is known must be right, and the cache must go on.
func TestCut(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cache")
	c := open(t, path, nil)
	put(t, c, "a", "b")
	put(t, c, "c")
	c.Close()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range content {
		cut := filepath.Join(dir, fmt.Sprint("cut", n))
		if err := os.WriteFile(cut, content[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		c := open(t, cut, nil)
		if got := known(t, c, "a", "b", "c"); got != "" && got != "a b" {
			t.Errorf("cut to %d bytes: %q is known", n, got)
		}
		put(t, c, "a", "b", "c", "d")
		c.Close()
		if got := known(t, open(t, cut, nil), "a", "b", "c", "d"); got != "a b c d" {
			t.Errorf("cut to %d bytes and put again: %q is known", n, got)
		}
	}
}

// TestFlipped flips each byte in turn: no vector may come out changed, and
// putting again must repair it.
func TestFlipped(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cache")
	c := open(t, path, nil)
	put(t, c, "a", "b")
	c.Close()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range content {
		flipped := filepath.Join(dir, fmt.Sprint("flipped", n))
		bad := bytes.Clone(content)
		bad[n] ^= 0x10
		if err := os.WriteFile(flipped, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		c := open(t, flipped, nil)
		known(t, c, "a", "b")
		put(t, c, "a", "b")
		if got := known(t, c, "a", "b"); got != "a b" {
			t.Errorf("byte %d flipped and put again: %q is known", n, got)
		}
	}
}

func TestDamagedIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	const notes = "my notes, by mistake under this name"
	if err := os.WriteFile(path, []byte(notes), 0o600); err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	c := open(t, path, &Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	put(t, c, "a")
	if got := known(t, c, "a"); got != "a" {
		t.Errorf("known: %q, want a", got)
	}
	if kept, err := os.ReadFile(path + ".damaged"); err != nil || string(kept) != notes {
		t.Errorf("set aside: %q, %v, want %q", kept, err, notes)
	}
	if !strings.Contains(logged.String(), "level=WARN") || !strings.Contains(logged.String(), path) {
		t.Errorf("logged %q, want a warning with the path", logged.String())
	}
}

func TestConcurrent(t *testing.T) {
	c := open(t, filepath.Join(t.TempDir(), "cache"), &Options{MaxEntries: 40})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for range 200 {
				text := fmt.Sprint(rng.IntN(60))
				if w == 0 {
					put(t, c, text)
				} else {
					known(t, c, text)
				}
			}
		})
	}
	wg.Wait()
}

func TestClosed(t *testing.T) {
	c := open(t, filepath.Join(t.TempDir(), "cache"), nil)
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Get(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Get after Close: %v", err)
	}
	if err := c.Put(nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Put after Close: %v", err)
	}
}

// bench holds a cache of 126,000 vectors of 384 numbers.
func bench(b *testing.B) (path string, keys []Key, v [][]float32) {
	rng := rand.New(rand.NewPCG(1, 1))
	v = make([][]float32, 256)
	for i := range v {
		v[i] = make([]float32, 384)
		for j := range v[i] {
			v[i][j] = rng.Float32()
		}
	}
	for i := range 126000 {
		keys = append(keys, KeyOf(fmt.Sprint(i)))
	}
	return filepath.Join(b.TempDir(), "cache"), keys, v
}

func fill(b *testing.B, path string, keys []Key, v [][]float32) *Cache {
	c, err := Open(path, "m", 384, nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < len(keys); i += len(v) {
		n := min(len(v), len(keys)-i)
		if err := c.Put(keys[i:i+n], v[:n]); err != nil {
			b.Fatal(err)
		}
	}
	return c
}

// BenchmarkPut puts 126,000 vectors in batches of 256.
func BenchmarkPut(b *testing.B) {
	path, keys, v := bench(b)
	for i := 0; b.Loop(); i++ {
		fill(b, fmt.Sprint(path, i), keys, v).Close()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(keys)), "µs/vector")
}

// BenchmarkOpenGet opens a cache of 126,000 vectors and gets them all.
func BenchmarkOpenGet(b *testing.B) {
	path, keys, v := bench(b)
	fill(b, path, keys, v).Close()
	b.Run("Open", func(b *testing.B) {
		for b.Loop() {
			c, err := Open(path, "m", 384, nil)
			if err != nil || c.Count() != len(keys) {
				b.Fatal(err)
			}
			c.Close()
		}
	})
	b.Run("Get", func(b *testing.B) {
		c, err := Open(path, "m", 384, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		for b.Loop() {
			for i := 0; i < len(keys); i += 256 {
				if _, err := c.Get(keys[i:min(i+256, len(keys))]); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(keys)), "µs/vector")
	})
}
