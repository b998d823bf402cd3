package toolbox

import (
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/base/home"
	"cairn/internal/store"
	"cairn/models"
)

// TestOpenVectors replaces vectors of another model, and leaves a path alone that
// fails to open for another reason.
func TestOpenVectors(t *testing.T) {
	open := func(dir string, d models.Description) *Toolbox {
		s := New(Options{Place: home.Place{Index: dir}})
		s.openVectors(d)
		return s
	}
	dir := t.TempDir()
	keys, vectors := []store.Key{store.KeyOf("a")}, [][]float32{{1, 0}}
	for _, d := range []models.Description{{ID: "one", Dimension: 2}, {ID: "two", Dimension: 2}} {
		s := open(dir, d)
		if got, err := s.index.vectors.Get(keys); err != nil || got[0] != nil {
			t.Errorf("%s: %v, %v, want no vector of another model", d.ID, got, err)
		}
		if err := s.index.vectors.Put(keys, vectors); err != nil {
			t.Fatal(err)
		}
		if err := s.index.close(); err != nil {
			t.Fatal(err)
		}
	}
	other := t.TempDir()
	path := filepath.Join(other, vectorsFolder)
	if err := os.WriteFile(path, []byte("not a folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(other, models.Description{ID: "one", Dimension: 2})
	if _, ok := s.index.vectors.(*memoryVectors); !ok {
		t.Errorf("a file was opened as the folder of the vectors: %T", s.index.vectors)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("what could not be opened was removed: %v", err)
	}
}
