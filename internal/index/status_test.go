package index

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/kv"
	"cairn/internal/store"
	"cairn/internal/store/docs"
)

// TestKindsFollowDocuments: the count of documents by format is kept until a document
// enters or leaves.
func TestKindsFollowDocuments(t *testing.T) {
	db, err := kv.Open(filepath.Join(t.TempDir(), "documents.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d, err := docs.Open(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	var k kindCounts
	for _, c := range []struct {
		put, remove string
		want        map[string]int
	}{
		{put: "a.md"}, {put: "b.html", want: map[string]int{"Markdown": 1, "html": 1}}, {put: "c.md", want: map[string]int{"Markdown": 2, "html": 1}}, {remove: "b.html"},
	} {
		if c.put != "" {
			err = d.Put(t.Context(), []docs.Put{{Document: store.Document{Path: c.put, Hash: strings.Repeat("0", 64)}}})
		} else {
			err = d.Delete(t.Context(), []string{c.remove})
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, err := k.of(d); err != nil || !maps.Equal(got, c.want) {
				t.Errorf("after %q %q: %v, %v; want %v", c.put, c.remove, got, err, c.want)
			}
		}
	}
}
