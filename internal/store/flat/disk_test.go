package flat

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
)

// batch makes n entries whose ids begin at from.
func batch(rng *rand.Rand, from, n, dim int) []store.VectorEntry {
	entries := make([]store.VectorEntry, n)
	for i := range entries {
		path := fmt.Sprintf("p%d", (from+i)/3)
		entries[i] = store.VectorEntry{Chunk: store.ChunkID(path, "a", from+i), Path: path, Vector: normal(rng, dim, nil), Labels: store.Labels{Found: true, Tags: []string{path}}}
	}
	return entries
}

func update(t *testing.T, s *Store, entries []store.VectorEntry, stale []string) {
	t.Helper()
	if err := s.Update(t.Context(), entries, stale); err != nil {
		t.Fatal(err)
	}
}

func chunks(entries []store.VectorEntry) (ids []string) {
	for i := range entries {
		ids = append(ids, entries[i].Chunk)
	}
	return ids
}

func count(t *testing.T, s *Store) int {
	t.Helper()
	n, err := s.Count()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, 4, "model@1", &Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read-only Open of nothing: %v, want fs.ErrNotExist", err)
	}
	s := open(t, dir, 4, nil)
	update(t, s, batch(rand.New(rand.NewPCG(1, 1)), 0, 5, 4), nil)
	s.Close()
	path := filepath.Join(dir, fileName)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var model *ModelError
	if _, err := Open(dir, 4, "model@2", nil); !errors.As(err, &model) || *model != (ModelError{Have: "model@1", Want: "model@2"}) {
		t.Errorf("Open with another model: %v, want *ModelError naming both", err)
	}
	var dimension *DimensionError
	if _, err := Open(dir, 5, "model@1", nil); !errors.As(err, &dimension) || *dimension != (DimensionError{Have: 4, Want: 5}) {
		t.Errorf("Open with another dimension: %v, want *DimensionError naming both", err)
	}
	for name, change := range map[string]func(b []byte) []byte{
		"text":         func([]byte) []byte { return []byte("# Notes\nThis is not a file of vectors at all.\n") },
		"empty":        func([]byte) []byte { return nil },
		"header":       func(b []byte) []byte { b[22] ^= 1; return b },
		"short header": func(b []byte) []byte { return b[:25] },
		"other format": func(b []byte) []byte { b[8] = 9; return b },
		"format 2":     func(b []byte) []byte { b[8] = 2; return b },
	} {
		bad := change(bytes.Clone(content))
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir, 4, "model@1", nil)
		var corrupt *CorruptError
		var format *FormatError
		if bad != nil && bytes.HasPrefix(bad, []byte(fileMagic)) && bad[8] != formatVersion {
			if !errors.As(err, &format) || format.Have != uint32(bad[8]) {
				t.Errorf("%s: %v, want *FormatError", name, err)
			}
		} else if !errors.As(err, &corrupt) {
			t.Errorf("%s: %v, want *CorruptError", name, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, bad) {
			t.Errorf("%s: Open changed the file (%v)", name, err)
		}
	}
	for _, dim := range []int{0, -1, MaxDimension + 1} {
		if _, err := Open(t.TempDir(), dim, "m", nil); err == nil {
			t.Errorf("Open accepted dimension %d", dim)
		}
	}
}

// TestTornTail opens the file cut at every length within the last record, as
// a crash leaves it: the update is there as a whole or not at all, and the
// store goes on.
func TestTornTail(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	dir := t.TempDir()
	s := open(t, dir, 4, nil)
	first, second := batch(rng, 0, 6, 4), batch(rng, 6, 3, 4)
	update(t, s, first, nil)
	whole := s.snap.Load().log.end
	update(t, s, second, chunks(first[:2]))
	s.Close()
	content, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	for cut := whole; cut <= int64(len(content)); cut++ {
		want := 6
		if cut == int64(len(content)) {
			want = 7
		}
		torn := t.TempDir()
		path := filepath.Join(torn, fileName)
		// Some file systems leave zeros where data was to be.
		zeros := append(bytes.Clone(content[:cut]), make([]byte, int64(len(content))-cut)...)
		for _, bytes := range [][]byte{content[:cut], zeros} {
			if err := os.WriteFile(path, bytes, 0o600); err != nil {
				t.Fatal(err)
			}
			ro := open(t, torn, 4, &Options{ReadOnly: true})
			if n := count(t, ro); n != want && string(bytes) != string(content) {
				t.Errorf("cut at %d: a reader counts %d, want %d", cut, n, want)
			}
			ro.Close()
			s := open(t, torn, 4, nil)
			if n := count(t, s); n != want && string(bytes) != string(content) {
				t.Errorf("cut at %d: %d vectors, want %d", cut, n, want)
			}
			if dropped := s.dropped; want == 6 && string(bytes) != string(content) && dropped != int64(len(bytes))-whole {
				t.Errorf("cut at %d: %d bytes dropped, want %d", cut, dropped, int64(len(bytes))-whole)
			}
			update(t, s, second, chunks(first[:2]))
			s.Close()
			s = open(t, torn, 4, nil)
			if n := count(t, s); n != 7 {
				t.Errorf("cut at %d and updated again: %d vectors, want 7", cut, n)
			}
			s.Close()
		}
	}
}

// TestDamaged flips every byte. Damage before the last record is an error, of Open, of
// a search that reads the vector, or of Verify; damage in the last record may be taken
// for one that a crash has torn. A search is never wrong and never panics.
func TestDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	dir := t.TempDir()
	s := open(t, dir, 4, nil)
	update(t, s, batch(rng, 0, 3, 4), nil)
	last := s.snap.Load().log.end
	update(t, s, batch(rng, 3, 2, 4), nil)
	query := []float32{1, 0, 0, 0}
	want := search(t, s, query, 9)
	s.Close()
	path := filepath.Join(dir, fileName)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range content {
		bad := bytes.Clone(content)
		bad[i] ^= 0x20
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir, 4, "model@1", nil)
		if err != nil {
			refused++
			continue
		}
		hits, err := s.Search(t.Context(), query, 9, store.Filter{})
		_, corrupt := errors.AsType[*CorruptError](err)
		switch found, verifyErr := s.Verify(t.Context()); {
		case corrupt && len(found.Problems) > 0 && verifyErr == nil:
			refused++
		case err != nil || verifyErr != nil:
			t.Errorf("byte %d: %v, %v", i, err, verifyErr)
		case int64(i) >= last && s.dropped > 0 && len(hits) == 3:
		case !slices.Equal(hits, want):
			t.Errorf("byte %d: %v, want %v", i, hits, want)
		case len(found.Problems) == 0:
			t.Errorf("byte %d: nothing is found", i)
		}
		s.Close()
	}
	if refused == 0 {
		t.Error("no flipped byte was noticed")
	}
}

func TestCompaction(t *testing.T) {
	const dim, n = 8, 7000
	rng := rand.New(rand.NewPCG(3, 3))
	for _, where := range []string{"disk", "memory"} {
		var logged bytes.Buffer
		dir := t.TempDir()
		s := Memory(dim)
		if where == "disk" {
			s = open(t, dir, dim, &Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		}
		reference := Memory(dim) // is given only what stays
		all := batch(rng, 0, n, dim)
		update(t, s, all, nil)
		old := s.snap.Load()
		again := batch(rng, n-2500, 2500, dim)
		update(t, s, again, chunks(all[:2000]))
		update(t, reference, slices.Concat(all[2000:n-2500], again), nil)
		if snap := s.snap.Load(); snap.n != n-2000 || snap.live != n-2000 || logged.Len() > 0 {
			t.Errorf("%s: %d slots for %d vectors after compaction, want %d for both (%s)", where, snap.n, snap.live, n-2000, logged.String())
		}
		check := func(s *Store) {
			t.Helper()
			for range 10 {
				query := normal(rng, dim, nil)
				if got, want := search(t, s, query, 20), search(t, reference, query, 20); !slices.Equal(got, want) {
					t.Errorf("%s: after compaction %v, want %v", where, got, want)
				}
			}
			hits, err := s.Search(t.Context(), all[0].Vector, 20, store.Filter{Tags: []string{"p700"}})
			if err != nil || len(hits) != 3 {
				t.Errorf("%s: filtered after compaction: %v, %v, want 3 hits", where, hits, err)
			}
		}
		check(s)
		if hits, err := old.rescore(s.kernel, []candidate{{slot: 0}, {slot: n - 1}}, all[0].Vector, 2, 1); err != nil || len(hits) != 2 {
			t.Errorf("%s: a search that began before the compaction: %v, %v", where, hits, err)
		}
		update(t, s, batch(rng, n, 10, dim), chunks(all[2000:2010]))
		update(t, reference, nil, chunks(all[2000:2010]))
		update(t, s, nil, chunks(batch(rng, n, 10, dim)))
		check(s)
		if where == "disk" {
			s.Close()
			check(open(t, dir, dim, nil))
			if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
				t.Errorf("compaction left %v behind", left)
			}
		}
	}
}

func TestReadOnly(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	dir := t.TempDir()
	w := open(t, dir, 8, nil)
	all := batch(rng, 0, 20, 8)
	update(t, w, all, nil)
	w.Close()
	r := open(t, dir, 8, &Options{ReadOnly: true})
	if n := count(t, r); n != 20 {
		t.Errorf("%d vectors, want 20", n)
	}
	for name, err := range map[string]error{
		"Update": r.Update(t.Context(), all, nil),
		"Clear":  r.Clear(t.Context()),
		"Put":    r.Put([]store.Key{store.KeyOf("a")}, [][]float32{all[0].Vector}),
	} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v, want %v", name, err, ErrReadOnly)
		}
	}
}

func TestClosed(t *testing.T) {
	for _, s := range []*Store{Memory(2), open(t, t.TempDir(), 2, nil)} {
		for range 2 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		_, searched := s.Search(t.Context(), []float32{1, 0}, 1, store.Filter{})
		_, counted := s.Count()
		_, scored := s.Scores(t.Context(), []float32{1, 0}, nil)
		for _, err := range []error{searched, counted, scored, s.Update(t.Context(), nil, nil)} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("after Close: %v, want %v", err, ErrClosed)
			}
		}
	}
}

func TestFailedWriteChangesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 7))
	dir := t.TempDir()
	s := open(t, dir, 4, nil)
	update(t, s, batch(rng, 0, 5, 4), nil)
	s.snap.Load().log.file.Close() // every write fails from here on
	err := s.Update(t.Context(), batch(rng, 5, 5, 4), nil)
	if err == nil || !strings.Contains(err.Error(), fileName) {
		t.Errorf("Update with a failing file: %v, want an error with its path", err)
	}
	if n := count(t, s); n != 5 {
		t.Errorf("after a failed Update: %d vectors, want 5", n)
	}
	if n := count(t, open(t, dir, 4, nil)); n != 5 {
		t.Errorf("opened again: %d vectors, want 5", n)
	}
}

// BenchmarkOpen opens a store of 126,000 vectors that is in the page cache.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	synthetic(b, dir, 126_000).Close()
	for b.Loop() {
		s, err := Open(dir, 384, "model@1", nil)
		if err != nil || s.snap.Load().live != 126_000 {
			b.Fatal(err)
		}
		s.Close()
	}
}

// BenchmarkUpdate adds 256 vectors at a time to a store of 20,000.
func BenchmarkUpdate(b *testing.B) {
	s := synthetic(b, b.TempDir(), 20_000)
	rng := rand.New(rand.NewPCG(1, 5))
	entries := batch(rng, 0, 256, 384)
	for b.Loop() {
		if err := s.Update(b.Context(), entries, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestFormat3 opens a file of format 3, with the chunks 0 to 2 of batch. Reading leaves it as
// it is; writing adds records of the present format to it.
func TestFormat3(t *testing.T) {
	old, err := os.ReadFile(filepath.Join("testdata", "format3.cairn"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	entries := batch(rand.New(rand.NewPCG(3, 3)), 0, 6, 4)
	for _, c := range []struct {
		o    *Options
		adds []store.VectorEntry
		want int
	}{
		{o: &Options{ReadOnly: true}, want: 3},
		{adds: entries[3:], want: 6},
		{want: 6},
	} {
		s := open(t, dir, 4, c.o)
		if c.adds != nil {
			update(t, s, c.adds, nil)
		}
		for i, e := range entries[:c.want] {
			hits, err := s.Search(t.Context(), e.Vector, 1, store.Filter{})
			if err != nil || len(hits) != 1 || hits[0].Chunk != e.Chunk {
				t.Errorf("nearest of chunk %d: %v, %v, want %s", i, hits, err, e.Chunk)
			}
		}
		if n := count(t, s); n != c.want {
			t.Errorf("%d chunks, want %d", n, c.want)
		}
		s.Close()
		if now, err := os.ReadFile(path); err != nil || c.o != nil && !bytes.Equal(now, old) || c.o == nil && now[8] != formatVersion {
			t.Errorf("after %+v, the file has version %d (%v)", c.o, now[8], err)
		}
	}
}
