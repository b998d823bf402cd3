package records

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/store/kv"
)

func openFile(t *testing.T, buckets ...string) *File {
	t.Helper()
	db, err := kv.Open(filepath.Join(t.TempDir(), "records.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return NewFile(db, buckets...)
}

func write(t *testing.T, s Store, since uint64, list ...Record) uint64 {
	t.Helper()
	g, err := s.Update(t.Context(), since, func(Changes) ([]Record, error) { return list, nil })
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func since(t *testing.T, s Store, generation uint64) Changes {
	t.Helper()
	c, err := s.Since(t.Context(), generation)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFile(t *testing.T) {
	f := openFile(t, "b", "a")
	if c := since(t, f, 0); c.Generation != 0 || len(c.Records) > 0 {
		t.Errorf("a new file has %+v", c)
	}
	x, y := Record{"a", "x", []byte("1")}, Record{"b", "y", []byte{}}
	if g := write(t, f, 0, y, x, Record{Bucket: "a", Key: "absent"}); g != 1 {
		t.Errorf("generation %d after the first write, want 1", g)
	}
	if diff := cmp.Diff(Changes{1, true, []Record{x, y}}, since(t, f, 0)); diff != "" {
		t.Errorf("all records (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(Changes{Generation: 1}, since(t, f, 1)); diff != "" {
		t.Errorf("nothing new (-want +got)\n%s", diff)
	}
	if g := write(t, f, 1); g != 1 {
		t.Errorf("generation %d after a write of nothing, want 1", g)
	}
	if g := write(t, f, 1, Record{Bucket: "a", Key: "x"}); g != 2 {
		t.Errorf("generation %d after a removal, want 2", g)
	}
	if diff := cmp.Diff(Changes{2, true, []Record{y}}, since(t, f, 1)); diff != "" {
		t.Errorf("after a removal (-want +got)\n%s", diff)
	}
	failure := errors.New("failure")
	if _, err := f.Update(t.Context(), 2, func(Changes) ([]Record, error) { return []Record{x}, failure }); !errors.Is(err, failure) {
		t.Errorf("a failing write returns %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Update(ctx, 2, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
	if c := since(t, f, 2); c.Generation != 2 {
		t.Errorf("generation %d after failures, want 2", c.Generation)
	}
}

func TestReplace(t *testing.T) {
	to := openFile(t, "a")
	x, y := Record{"a", "x", []byte("1")}, Record{"a", "y", []byte("2")}
	write(t, to, 0, Record{"a", "x", []byte("old")}, Record{"a", "z", []byte("old")})
	if err := Replace(t.Context(), to, []Record{x, y}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Record{x, y}, since(t, to, 0).Records); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
