package flat

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"cairn/internal/store"
)

// TestFileCutShort: a search of a file that another program has cut short fails, and
// the process goes on.
func TestFileCutShort(t *testing.T) {
	s, err := Open(t.TempDir(), 384, "model", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	entries := batch(rand.New(rand.NewPCG(1, 1)), 0, 200, 384)
	if err := s.Update(context.Background(), entries, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(s.path, 4096); err != nil {
		t.Fatal(err)
	}
	if hits, err := s.Search(context.Background(), entries[0].Vector, 10, store.Filter{}); err == nil {
		t.Errorf("found %v in a file that is cut short", hits)
	}
}

// TestMappedFileGrows: vectors behind what was mapped when the file was opened are found
// as those before.
func TestMappedFileGrows(t *testing.T) {
	s, err := Open(t.TempDir(), 384, "model", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.snap.Load().log.mapped == nil {
		t.Skip("files are not mapped here")
	}
	s.snap.Load().log.mapped.bytes = s.snap.Load().log.mapped.bytes[:8192]
	entries := batch(rand.New(rand.NewPCG(1, 1)), 0, 200, 384)
	for i := range entries {
		if err := s.Update(context.Background(), entries[i:i+1], nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range entries {
		hits, err := s.Search(context.Background(), e.Vector, 1, store.Filter{})
		if err != nil || len(hits) != 1 || hits[0].Chunk != e.Chunk {
			t.Errorf("the nearest to %s is %v, %v", e.Chunk, hits, err)
		}
	}
}
