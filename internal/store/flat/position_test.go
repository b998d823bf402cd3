package flat

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestPosition: the position increases with every update, is lower in an older or cut file,
// and survives a compaction, also one that leaves nothing, and the image of sealed blocks.
func TestPosition(t *testing.T) {
	rng, dir := rand.New(rand.NewPCG(5, 5)), t.TempDir()
	path, o := filepath.Join(dir, fileName), &Options{sealedFrom: 2 * blockLen}
	s := open(t, dir, 4, o)
	if s.Position() != 0 {
		t.Errorf("position %d of an empty store, want 0", s.Position())
	}
	all := batch(rng, 0, 3*blockLen, 4)
	update(t, s, all[:5], nil)
	first := s.Position()
	update(t, s, all, nil)
	second, end := s.Position(), s.snap.Load().log.end
	update(t, s, all[:1], nil)
	third := s.Position()
	if first == 0 || second <= first || third <= second {
		t.Errorf("positions %d, %d, %d, want an increase", first, second, third)
	}
	reopen := func(want uint64, when string) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s = open(t, dir, 4, o); s.Position() != want {
			t.Errorf("position %d %s, want %d", s.Position(), when, want)
		}
	}
	reopen(third, "after opening")
	if err := os.Truncate(path, end); err != nil {
		t.Fatal(err)
	}
	reopen(second, "of a cut file")
	for _, stale := range [][]string{nil, chunks(all)} {
		update(t, s, nil, stale)
		want := s.Position()
		if err := s.compact(s.snap.Load()); err != nil {
			t.Fatal(err)
		}
		if s.Position() != want {
			t.Errorf("position %d after a compaction, want %d", s.Position(), want)
		}
		reopen(want, "after a compaction")
	}
}
