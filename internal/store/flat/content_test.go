package flat

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cairn/internal/store"
)

// of is the vector that belongs to text in these tests.
func of(text string) []float32 {
	key := store.KeyOf(text)
	return normal(rand.New(rand.NewPCG(binary.LittleEndian.Uint64(key[:]), 0)), 5, nil)
}

func put(t *testing.T, s *Store, texts ...string) {
	t.Helper()
	var keys []store.Key
	var vectors [][]float32
	for _, text := range texts {
		keys, vectors = append(keys, store.KeyOf(text)), append(vectors, of(text))
	}
	if err := s.Put(keys, vectors); err != nil {
		t.Fatal(err)
	}
}

// add stores a chunk for each text, named after it.
func add(t *testing.T, s *Store, texts ...string) {
	t.Helper()
	var entries []store.VectorEntry
	for _, text := range texts {
		entries = append(entries, store.VectorEntry{Chunk: text + "#x.0", Path: text, Vector: of(text), Key: store.KeyOf(text)})
	}
	update(t, s, entries, nil)
}

// near reports whether two vectors are the same in 16 bits a coordinate.
func near(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Abs(float64(x-y)) <= 1./512/127 })
}

// known returns which of texts have a vector, after comparing it.
func known(t *testing.T, s *Store, texts ...string) string {
	t.Helper()
	keys := make([]store.Key, len(texts))
	for i, text := range texts {
		keys[i] = store.KeyOf(text)
	}
	vectors, err := s.Get(keys)
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for i, v := range vectors {
		if v == nil {
			continue
		}
		known = append(known, texts[i])
		if want := of(texts[i]); !near(v, want) {
			t.Errorf("%q: %v, want %v", texts[i], v, want)
		}
	}
	return strings.Join(known, " ")
}

// vectorsIn counts the vectors in the file.
func vectorsIn(s *Store) int { return s.contents.n }

func TestPutGet(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 5, nil)
	put(t, s, "a", "b", "a")
	put(t, s, "b", "c")
	put(t, s)
	for range 2 {
		if got := known(t, s, "c", "x", "a", "b", "a"); got != "c a b a" {
			t.Errorf("known: %q, want %q", got, "c a b a")
		}
		if n := vectorsIn(s); n != 3 {
			t.Errorf("%d vectors in the file, want 3", n)
		}
		s = open(t, dir, 5, nil) // sees what a killed process leaves
	}
	m := Memory(5)
	put(t, m, "a")
	if got := known(t, m, "a"); got != "" {
		t.Errorf("in memory: %q is known", got)
	}
}

func TestPutRefuses(t *testing.T) {
	s := open(t, t.TempDir(), 5, nil)
	nan := slices.Repeat([]float32{float32(math.NaN())}, 5)
	for name, v := range map[string][]float32{"short": {1}, "NaN": nan, "none": nil} {
		if err := s.Put([]store.Key{store.KeyOf("a"), store.KeyOf("b")}, [][]float32{of("a"), v}); err == nil {
			t.Errorf("Put accepted a %s vector", name)
		}
	}
	if err := s.Put([]store.Key{store.KeyOf("a")}, nil); err == nil {
		t.Error("Put accepted a key without a vector")
	}
	if got := known(t, s, "a", "b"); got != "" {
		t.Errorf("after refused calls: %q is known", got)
	}
}

// TestVectorIsStoredOnce gives chunks vectors that are there already: of Put, of
// another chunk, and of a chunk that was removed.
func TestVectorIsStoredOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 5, nil)
	put(t, s, "a", "b")
	add(t, s, "a", "b", "c")
	update(t, s, []store.VectorEntry{{Chunk: "copy#x.0", Path: "copy", Vector: of("c"), Key: store.KeyOf("c")}}, []string{"b#x.0"})
	add(t, s, "b")
	for range 2 {
		if n := vectorsIn(s); n != 3 {
			t.Errorf("%d vectors in the file, want 3", n)
		}
		for chunk, text := range map[string]string{"a#x.0": "a", "b#x.0": "b", "c#x.0": "c", "copy#x.0": "c"} {
			got, err := s.Vectors(t.Context(), []string{chunk})
			if err != nil || !near(got[0], of(text)) {
				t.Errorf("%s: %v, %v, want %v", chunk, got, err, of(text))
			}
		}
		s.Close()
		s = open(t, dir, 5, nil)
	}
}

func TestClearKeepsVectors(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 5, nil)
	add(t, s, "a", "b")
	if err := s.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if n := count(t, s); n != 0 || len(search(t, s, of("a"), 5)) != 0 {
			t.Errorf("%d chunks after Clear", n)
		}
		if got := known(t, s, "a", "b"); got != "a b" {
			t.Errorf("after Clear %q is known, want %q", got, "a b")
		}
		s.Close()
		s = open(t, dir, 5, nil)
	}
	add(t, s, "b")
	if hits := search(t, s, of("b"), 5); len(hits) != 1 || hits[0].Chunk != "b#x.0" {
		t.Errorf("after Clear and Update: %v", hits)
	}
}

// TestCachedAreBounded compacts a store whose vectors without a chunk exceed the
// bound: the newest stay, and so do those of chunks.
func TestCachedAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 5, &Options{MaxCached: 8})
	add(t, s, "live", "leaves")
	for i := range 8 {
		put(t, s, fmt.Sprint(i))
	}
	update(t, s, nil, []string{"leaves#x.0"}) // the ninth without a chunk: six stay
	for range 2 {
		if got := known(t, s, "live", "leaves", "0", "1", "2", "3", "7"); got != "live 2 3 7" {
			t.Errorf("known: %q, want %q", got, "live 2 3 7")
		}
		if n := vectorsIn(s); n != 7 {
			t.Errorf("%d vectors in the file, want 7", n)
		}
		if hits := search(t, s, of("live"), 3); len(hits) != 1 || hits[0].Score < .999 {
			t.Errorf("the live chunk: %v", hits)
		}
		s.Close()
		s = open(t, dir, 5, &Options{MaxCached: 8})
	}
}

// TestFlippedVectors flips each byte in turn: Get never returns a changed vector,
// and putting it again repairs it.
func TestFlippedVectors(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 5, nil)
	put(t, s, "a", "b")
	add(t, s, "c")
	s.Close()
	content, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	for n := range content {
		flipped := t.TempDir()
		bad := bytes.Clone(content)
		bad[n] ^= 0x10
		if err := os.WriteFile(filepath.Join(flipped, fileName), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(flipped, 5, "model@1", nil)
		if err != nil {
			continue // refused as a whole
		}
		known(t, s, "a", "b", "c")
		put(t, s, "a", "b", "c")
		if got := known(t, s, "a", "b", "c"); got != "a b c" {
			t.Errorf("byte %d flipped and put again: %q is known", n, got)
		}
		s.Close()
	}
}

func TestSalvage(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 5, nil)
	add(t, s, "a", "b")
	middle := s.snap.Load().log.end
	add(t, s, "c")
	put(t, s, "d")
	s.Close()
	path := filepath.Join(dir, fileName)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[middle+headerSize] ^= 1 // the names of the second record
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if _, err := Open(dir, 5, "model@1", nil); !errors.As(err, &corrupt) {
		t.Fatalf("Open: %v, want *CorruptError", err)
	}
	fresh := open(t, t.TempDir(), 5, nil)
	n, err := fresh.Salvage(dir)
	if err != nil || n != 3 {
		t.Errorf("Salvage: %d, %v, want 3", n, err)
	}
	if got := known(t, fresh, "a", "b", "c", "d"); got != "a b d" {
		t.Errorf("salvaged: %q, want %q", got, "a b d")
	}
}

func TestContentsConcurrently(t *testing.T) {
	s := open(t, t.TempDir(), 5, &Options{MaxCached: 20})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for range 100 {
				text := fmt.Sprint(rng.IntN(60))
				switch w {
				case 0:
					put(t, s, text)
				case 1:
					add(t, s, text)
				case 2:
					search(t, s, of(text), 3)
				default:
					known(t, s, text)
				}
			}
		})
	}
	wg.Wait()
}

// TestDamagedHeaderInTheMiddle: a damaged header of a record is not taken for the end
// of the file, and the records behind it are salvaged.
func TestDamagedHeaderInTheMiddle(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	dir, next := t.TempDir(), t.TempDir()
	s := open(t, dir, 4, nil)
	var entries [3][]store.VectorEntry
	var ends []int64
	for i := range entries {
		entries[i] = batch(rng, 3*i, 3, 4)
		for k := range entries[i] {
			entries[i][k].Key = store.Key{byte(i + 1), byte(k + 1)}
		}
		ends = append(ends, s.snap.Load().log.end)
		update(t, s, entries[i], nil)
	}
	s.Close()
	path := filepath.Join(dir, fileName)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[ends[1]+9] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []*Options{nil, {ReadOnly: true}} {
		if _, err := Open(dir, 4, "model@1", o); !Unusable(err) {
			t.Fatalf("Open: %v, want a *CorruptError", err)
		}
	}
	s = open(t, next, 4, nil)
	if n, err := s.Salvage(dir); n != 6 || err != nil {
		t.Errorf("salvaged %d vectors, %v, want 6", n, err)
	}
	for _, i := range []int{0, 2} {
		for _, e := range entries[i] {
			if got, err := s.Get([]store.Key{e.Key}); err != nil || !near(got[0], e.Vector) {
				t.Errorf("vector %v: %v, %v", e.Key[:2], got, err)
			}
		}
	}
}

// TestRebuildKeepsVectors clears a store that holds more vectors than may be without a
// chunk, and adds the chunks again in small batches, as the rebuilding of an index does,
// with a restart in the middle. No vector is lost. Once they are taken again, the bound holds.
func TestRebuildKeepsVectors(t *testing.T) {
	dir := t.TempDir()
	bound := &Options{MaxCached: 8}
	s := open(t, dir, 5, bound)
	var texts []string
	for i := range 40 {
		texts = append(texts, fmt.Sprint(i))
	}
	add(t, s, texts...)
	if err := s.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if i == 20 {
			s.Close()
			s = open(t, dir, 5, bound)
		}
		add(t, s, text)
		if got := known(t, s, texts...); got != strings.Join(texts, " ") {
			t.Fatalf("after %d chunks, %q is known", i+1, got)
		}
	}
	if snap := s.snap.Load(); snap.n != 40 || vectorsIn(s) != 40 {
		t.Errorf("%d slots and %d vectors, want 40", snap.n, vectorsIn(s))
	}
	for _, text := range texts[:9] {
		update(t, s, nil, []string{text + "#x.0"})
	}
	if n := vectorsIn(s); n != 37 {
		t.Errorf("%d vectors after nine chunks were removed, want 31 of chunks and 6", n)
	}
}
