package keyword

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/store"
	"cairn/internal/text/query"
)

// TestDamagedSegment flips bits of a segment: every search and every update fails with
// ErrCorrupt, so that no merge hides the damage, and Verify reports it.
func TestDamagedSegment(t *testing.T) {
	dir := t.TempDir()
	x, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Update(ctx, crashEntries(1), nil); err != nil {
		t.Fatal(err)
	}
	if found, err := x.Verify(ctx); err != nil || len(found.Problems) > 0 || found.Bytes == 0 {
		t.Fatalf("Verify of a whole index: %+v, %v", found, err)
	}
	x.Close()
	segments, err := filepath.Glob(filepath.Join(dir, "*.zap"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("segments %q, %v, want one", segments, err)
	}
	content, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(7, 7))
	for range 40 {
		at := r.IntN(len(content))
		damaged := t.TempDir() // scorch keeps a folder locked that it could not open
		if err := os.CopyFS(damaged, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		content[at] ^= 4
		if err := os.WriteFile(filepath.Join(damaged, filepath.Base(segments[0])), content, 0o600); err != nil {
			t.Fatal(err)
		}
		content[at] ^= 4
		x, err := Open(damaged, nil)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("byte %d: Open: %v", at, err)
			}
			continue
		}
		if found, err := x.Verify(ctx); err != nil || len(found.Problems) != 1 {
			t.Errorf("byte %d: Verify: %+v, %v, want one problem", at, found, err)
		}
		if hits, err := x.Search(ctx, query.Parse("common"), 5, store.Filter{}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d: %d hits, %v, want ErrCorrupt", at, len(hits), err)
		}
		if err := x.Update(ctx, crashEntries(2), nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d: Update: %v, want ErrCorrupt", at, err)
		}
		x.Close()
	}
}
