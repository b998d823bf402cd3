package toolbox

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/store/kv"
	"cairn/internal/toolbox/records"
)

// brokenStore is a records.Store whose writes fail.
type brokenStore struct{ records.Store }

var errBroken = errors.New("the disk is full")

func (brokenStore) Update(context.Context, uint64, func(records.Changes) ([]records.Record, error)) (uint64, error) {
	return 0, errBroken
}

// TestRestoreReplacesBothPartsOrNone: if the second part cannot be written, the first has
// its old records.
func TestRestoreReplacesBothPartsOrNone(t *testing.T) {
	db, err := kv.Open(filepath.Join(t.TempDir(), "records.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	first := records.NewFile(db, "b")
	old := []records.Record{{Bucket: "b", Key: "old", Value: []byte("1")}}
	if err := records.Replace(t.Context(), first, old); err != nil {
		t.Fatal(err)
	}
	s := &Toolbox{records: map[string]records.Store{catalogPart: first, usagePart: brokenStore{records.NewFile(db, "u")}}}
	lines := []Line{{Part: catalogPart, Bucket: "b", Key: []byte("new"), Value: []byte("2")}}
	if _, err := s.restore(t.Context(), lines); !errors.Is(err, errBroken) {
		t.Errorf("restore = %v, want %v", err, errBroken)
	}
	c, err := first.Since(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []records.Record{{Bucket: "b", Key: "old", Value: []byte("1")}}
	if diff := cmp.Diff(want, c.Records); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
