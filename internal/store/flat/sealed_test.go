package flat

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cairn/internal/base/checksum"
	"cairn/internal/store"
)

// sealing are options that seal the blocks of a store of two blocks.
func sealing(readOnly bool) *Options {
	return &Options{sealedFrom: 2 * blockLen, ReadOnly: readOnly}
}

// sealedStore returns the folder of a store of n vectors of 64 coordinates whose blocks are
// sealed, and the same vectors in memory.
func sealedStore(t *testing.T, n int) (dir string, s, want *Store, entries []store.VectorEntry) {
	dir = t.TempDir()
	s, want = open(t, dir, 64, sealing(false)), Memory(64)
	entries = batch(rand.New(rand.NewPCG(1, 8)), 0, n, 64)
	for part := range slices.Chunk(entries, 700) {
		update(t, s, part, nil)
		update(t, want, part, nil)
	}
	return dir, s, want, entries
}

// sameSearches compares searches of two stores. One hit in 1,000 may be another, but none of
// the first ten.
func sameSearches(t *testing.T, got, want *Store) {
	t.Helper()
	rng := rand.New(rand.NewPCG(2, 8))
	for i := range 20 {
		query, k, f := normal(rng, 64, nil), []int{1, 30, 300, 5000}[i%4], store.Filter{}
		if i%3 == 0 {
			f.PathPrefix = "p1"
		}
		a, err := got.Search(t.Context(), query, k, f)
		b, wantErr := want.Search(t.Context(), query, k, f)
		if err != nil || wantErr != nil {
			t.Fatal(err, wantErr)
		}
		found := map[string]float64{}
		for _, hit := range a {
			found[hit.Chunk] = hit.Score
		}
		missing := 0
		for _, hit := range b {
			if score, ok := found[hit.Chunk]; !ok {
				missing++
			} else if math.Abs(score-hit.Score) > 1e-6 {
				t.Errorf("search %d: %s has score %v, want %v", i, hit.Chunk, score, hit.Score)
			}
		}
		if first := min(10, len(b)); len(a) != len(b) || 1000*missing > len(b) || !slices.EqualFunc(a[:first], b[:first], func(a, b store.Hit) bool { return a.Chunk == b.Chunk }) {
			t.Errorf("search %d for %d: %d hits, want %d; %d are missing", i, k, len(a), len(b), missing)
		}
	}
}

func sealedBlocks(s *Store) (n int) {
	for _, b := range s.snap.Load().blocks {
		if b.rows.Load() == nil {
			n++
		}
	}
	return n
}

// TestSealed compares a store whose blocks are sealed with one in memory: as it was
// written, read again, after removals, and without its image or with a damaged one.
func TestSealed(t *testing.T) {
	dir, s, want, entries := sealedStore(t, 5*blockLen+100)
	if n := sealedBlocks(s); n != 5 {
		t.Fatalf("%d blocks are sealed, want 5", n)
	}
	sameSearches(t, s, want)
	ids := []string{entries[5].Chunk, entries[3000].Chunk, entries[5*blockLen+1].Chunk, "none"}
	if got, err := s.Vectors(t.Context(), ids); err != nil || !near(got[1], entries[3000].Vector) || got[3] != nil {
		t.Errorf("vectors %v, %v", got, err)
	}
	for _, s := range []*Store{s, want} {
		update(t, s, nil, ids)
	}
	sameSearches(t, s, want)
	killed := t.TempDir() // the files as they are if the process is killed now
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(dir, imageName)
	for _, c := range []struct {
		dir   string
		whole bool
	}{{killed, false}, {dir, true}} {
		read := open(t, c.dir, 64, sealing(true))
		if n := read.snap.Load().n; read.imaged == 0 || (read.imaged == n) != c.whole {
			t.Fatalf("the image has %d slots of %d, want all of them: %v", read.imaged, n, c.whole)
		}
		sameSearches(t, read, want)
		read.Close()
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	open(t, dir, 64, sealing(false)).Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	otherDir, _, _, _ := sealedStore(t, 3*blockLen)
	other, err := os.ReadFile(filepath.Join(otherDir, imageName))
	if err != nil {
		t.Fatal(err)
	}
	flipped := func(at int) []byte {
		b := slices.Clone(whole)
		b[at] ^= 4
		return b
	}
	// forged has another number in slot 10 and the checksums of that.
	forged := func(part int, number uint32) []byte {
		b := slices.Clone(whole)
		binary.NativeEndian.PutUint32(b[4*(part*blockLen+10):], number)
		sums := b[len(b)-trailerSize-4*((len(b)-trailerSize)/imagePage+1):]
		binary.NativeEndian.PutUint32(sums, checksum.Of(b[:min(imagePage, len(b)-len(sums))]))
		binary.NativeEndian.PutUint32(sums[len(sums)-4:], checksum.Of(sums[:len(sums)-4]))
		return b
	}
	if !slices.Equal(forged(1, 10), whole) { // slot 10 has vector 10
		t.Fatal("the forged images do not have the right checksums")
	}
	for name, content := range map[string][]byte{
		"whole": whole, "none": nil, "short": whole[:len(whole)/3], "of other records": other,
		"a flipped name": flipped(100), "a flipped sketch": flipped(len(whole) / 2), "a flipped trailer": flipped(len(whole) - 5),
		"a vector that is missing": forged(1, 1<<20), "a document that is missing": forged(2, 1<<31), "an ID that ends before it begins": forged(3, 1),
	} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		read := open(t, dir, 64, sealing(true))
		if n := sealedBlocks(read); n != 5 {
			t.Errorf("%s: %d blocks are sealed, want 5", name, n)
		}
		sameSearches(t, read, want)
		if used := read.imaged == 5*blockLen+100; used != (name == "whole") {
			t.Errorf("%s: %d slots are from the image", name, read.imaged)
		}
		if got, err := os.ReadFile(path); err != nil || !slices.Equal(got, content) {
			t.Errorf("%s: a reader changed the image, %v", name, err)
		}
		read.Close()
		s = open(t, dir, 64, sealing(false))
		if got, err := os.ReadFile(path); err != nil || !slices.Equal(got, whole) {
			t.Errorf("%s: the writer did not restore the image, %v", name, err)
		}
		s.Close()
	}

}

// TestSealedCompaction compares a compacted store with one in memory, and opens a store
// that was cleared.
func TestSealedCompaction(t *testing.T) {
	dir, s, want, entries := sealedStore(t, 5*blockLen+100)
	s.Close()
	path := filepath.Join(dir, imageName)
	leftover := filepath.Join(dir, ".cairn-"+imageName+".1.tmp")
	if err := os.WriteFile(leftover, []byte("a part"), 0o644); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, 64, sealing(false))
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the rest of an image whose writer was killed: %v, want none", err)
	}
	var stale []string
	for i := range entries {
		if i%2 == 0 {
			stale = append(stale, entries[i].Chunk)
		}
	}
	if err := s.Update(t.Context(), nil, stale); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	err := s.compact(s.snap.Load())
	s.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if n := sealedBlocks(s); n != 2 {
		t.Errorf("%d blocks are sealed after a compaction, want 2", n)
	}
	update(t, want, nil, stale)
	sameSearches(t, s, want)
	if err := s.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	open(t, dir, 64, sealing(false))
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the image of an empty store: %v, want none", err)
	}
}

// TestSealedSinceTheSnapshot searches a snapshot whose last block was completed and sealed
// after it was taken.
func TestSealedSinceTheSnapshot(t *testing.T) {
	_, s, want, _ := sealedStore(t, 3*blockLen-50)
	old := s.snap.Load()
	more := batch(rand.New(rand.NewPCG(3, 8)), 3*blockLen-50, 100, 64)
	update(t, s, more, nil)
	if n := sealedBlocks(s); n != 3 {
		t.Fatalf("%d blocks are sealed, want 3", n)
	}
	s.snap.Store(old)
	sameSearches(t, s, want)
}

// TestDamagedCodeOfASealedBlock damages a code that only a search reads.
func TestDamagedCodeOfASealedBlock(t *testing.T) {
	dir, s, _, entries := sealedStore(t, 2*blockLen)
	s.Close()
	path := filepath.Join(dir, fileName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	code := make([]byte, 64)
	quantise(code, nil, entries[10].Vector)
	b[bytes.Index(b, code)+7] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, 64, sealing(true))
	if _, err := s.Search(t.Context(), entries[10].Vector, 5, store.Filter{}); !Unusable(err) {
		t.Errorf("the search of a damaged vector: %v, want a *CorruptError", err)
	}
}

// TestCoarse compares the coarse products of every kernel with the obvious loop.
func TestCoarse(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 8))
	for _, units := range []int{1, 2, 3, 9} {
		for _, extreme := range []bool{false, true} {
			codes, query := make([]byte, blockLen*32*units), make([]int8, units*coarseUnit)
			for i := range codes {
				codes[i] = byte(rng.Uint32())
			}
			for i := range query {
				query[i] = int8(rng.IntN(255) - 127)
			}
			if extreme {
				for i := range codes {
					codes[i] = 255
				}
				for i := range query {
					query[i] = 127
				}
			}
			places := []uint16{0, 3, 700, 700, 1023}
			var want []int32
			for _, at := range places {
				sum := int32(0)
				for j, q := range query {
					b := codes[int(at)*32*units+j/coarseUnit*32+j%32]
					sum += int32(q) * int32(b>>(j%coarseUnit/32*coarseBits)&(1<<coarseBits-1))
				}
				want = append(want, sum)
			}
			for _, k := range available() {
				got := make([]int32, len(places)+1)
				k.coarse(got, codes, places, query)
				if !slices.Equal(got[:len(places)], want) || got[len(places)] != 0 {
					t.Errorf("%s, %d units: %v, want %v and 0", k.name, units, got, want)
				}
			}
		}
	}
}

// TestImageCannotBeWritten: the store works without an image, and does not try again at
// every update.
func TestImageCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, imageName, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	var warnings bytes.Buffer
	o := sealing(false)
	o.Logger = slog.New(slog.NewTextHandler(&warnings, nil))
	s, want := open(t, dir, 64, o), Memory(64)
	for part := range slices.Chunk(batch(rand.New(rand.NewPCG(5, 8)), 0, 2*blockLen+20, 64), 2*blockLen) {
		update(t, s, part, nil)
		update(t, want, part, nil)
	}
	if n := bytes.Count(warnings.Bytes(), []byte("cannot be written")); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, warnings.Bytes())
	}
	sameSearches(t, s, want)
	s.Close()
	sameSearches(t, open(t, dir, 64, sealing(true)), want)
}
