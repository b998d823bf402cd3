package flat

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cairn/internal/base/checksum"
	"cairn/internal/store"
)

// partitioning are options that order the slots of a store of four blocks.
func partitioning(readOnly bool) *Options {
	return &Options{sealedFrom: 2 * blockLen, partitionedFrom: 4 * blockLen, ReadOnly: readOnly}
}

// sameAsExact compares searches of a store with ordered slots with those of another: with a
// filter they find the same chunks, and without one 98 of 100.
func sameAsExact(t *testing.T, name string, got, want *Store) {
	t.Helper()
	rng := rand.New(rand.NewPCG(2, 9))
	var near, exact [][]store.Hit
	for i := range 40 {
		query, f := normal(rng, 64, centres[i][:64]), store.Filter{}
		switch i % 4 {
		case 1:
			f.PathPrefix = fmt.Sprintf("p%d", i)
		case 2:
			f.PathPrefix, f.Tags = "p1", []string{"p10", "p17", "p1024", "p9"}
		case 3:
			f.PathPrefix = "p"
		}
		a, err := got.Search(t.Context(), query, 50, f)
		b, wantErr := want.Search(t.Context(), query, 50, f)
		if err != nil || wantErr != nil || len(a) != len(b) {
			t.Fatalf("%s: %d hits, want %d; %v, %v", name, len(a), len(b), err, wantErr)
		}
		if !f.IsZero() && recall([][]store.Hit{a}, [][]store.Hit{b}, 50) < 1 {
			t.Errorf("%s, filter %v: other hits than an exact search", name, f)
		} else if f.IsZero() {
			near, exact = append(near, a), append(exact, b)
		}
	}
	if r := recall(near, exact, 10); r < .98 {
		t.Errorf("%s: %.3f of the best ten, want at least .98", name, r)
	}
}

// TestPartitions compares a store whose slots are ordered with one in memory: as it was
// written, after updates, read again, without its image or with a damaged one, and cleared.
func TestPartitions(t *testing.T) {
	const n = 80 * blockLen
	dir := t.TempDir()
	s, want := open(t, dir, 64, partitioning(false)), Memory(64)
	rng := rand.New(rand.NewPCG(1, 9))
	entries := batch(rng, 0, n, 64)
	for i := range entries {
		entries[i].Vector = normal(rng, 64, centres[rng.IntN(len(centres))][:64])
	}
	for part := range slices.Chunk(entries, 5000) {
		update(t, s, part, nil)
		update(t, want, part, nil)
	}
	ordered := func(s *Store, name string, least, most int) {
		t.Helper()
		if n := len(s.snap.Load().partitions.of); n < least || n > most {
			t.Errorf("%s: %d ordered slots, want %d to %d", name, n, least, most)
		}
		sameAsExact(t, name, s, want)
	}
	ordered(s, "written", n*7/8, n)
	visited := &scan{snap: s.snap.Load(), kernel: s.kernel, query: newQuery(entries[0].Vector, 64), k: 10}
	visited.open(entries[0].Vector, true)
	if all := len(visited.blocks); len(visited.visit) > all*3/4 {
		t.Errorf("a search visits %d blocks of %d, want fewer", len(visited.visit), all)
	}
	entries[7].Vector, entries[8].Labels.Tags = normal(rng, 64, nil), []string{"p9"}
	changed := append(batch(rng, n, 900, 64), entries[7], entries[8])
	for _, s := range []*Store{s, want} {
		update(t, s, changed, []string{entries[3].Chunk, entries[30_000].Chunk, changed[1].Chunk, "none"})
	}
	ordered(s, "changed", n*7/8, n)
	killed := t.TempDir() // the files as they are if the process is killed now
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ordered(open(t, killed, 64, partitioning(true)), "killed", n*7/8, n)
	ordered(open(t, dir, 64, partitioning(true)), "read", n*7/8, n)
	path := filepath.Join(dir, imageName)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, 64, partitioning(false))
	ordered(s, "ordered again", n, n+900)
	s.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var trailer imageTrailer
	if _, err := binary.Decode(whole[len(whole)-trailerSize:], binary.NativeEndian, &trailer); err != nil {
		t.Fatal(err)
	}
	layout := trailer.layout(64)
	for name, at := range map[string]int{"a document without an end": layout.starts + 40, "a slot that is missing": layout.of + 40} {
		forged := slices.Clone(whole)
		binary.NativeEndian.PutUint32(forged[at:], 1<<31)
		page := at / imagePage
		sums := forged[layout.checksums:]
		binary.NativeEndian.PutUint32(sums[4*page:], checksum.Of(forged[page*imagePage:min((page+1)*imagePage, layout.checksums)]))
		binary.NativeEndian.PutUint32(sums[len(sums)-4:], checksum.Of(sums[:len(sums)-4]))
		if err := os.WriteFile(path, forged, 0o644); err != nil {
			t.Fatal(err)
		}
		ordered(open(t, dir, 64, partitioning(true)), name, 0, 0)
	}
	s = open(t, dir, 64, partitioning(false))
	ordered(s, "after damage", n, n+900)
	for _, s := range []*Store{s, want} {
		if err := s.Clear(t.Context()); err != nil {
			t.Fatal(err)
		}
		update(t, s, entries[:3*blockLen], nil)
	}
	ordered(s, "cleared", 0, 0)
}

// TestPartitionsOfEqualVectors orders vectors that no centre divides.
func TestPartitionsOfEqualVectors(t *testing.T) {
	s := open(t, t.TempDir(), 64, partitioning(false))
	rng := rand.New(rand.NewPCG(3, 9))
	entries := batch(rng, 0, 6*blockLen, 64)
	for i := range entries {
		entries[i].Vector = entries[0].Vector
	}
	update(t, s, entries, nil)
	if n := len(s.snap.Load().partitions.of); n != 6*blockLen {
		t.Errorf("%d ordered slots, want %d", n, 6*blockLen)
	}
	if hits := search(t, s, entries[0].Vector, 3); len(hits) != 3 || hits[2].Score < .999 {
		t.Errorf("hits %v, want three with a score of 1", hits)
	}
}
