package toolbox

import (
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/store"
	"cairn/models"
)

// TestOpenFile replaces vectors of another model, and leaves a path alone that
// fails to open for another reason.
func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	keys, vectors := []store.Key{store.KeyOf("a")}, [][]float32{{1, 0}}
	for _, d := range []models.Description{{ID: "one", Dimension: 2}, {ID: "two", Dimension: 2}} {
		c, err := openFile(dir, d)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Get(keys); err != nil || got[0] != nil {
			t.Errorf("%s: %v, %v, want no vector of another model", d.ID, got, err)
		}
		if err := c.Put(keys, vectors); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	other := t.TempDir()
	path := filepath.Join(other, vectorsFolder)
	if err := os.WriteFile(path, []byte("not a folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := openFile(other, models.Description{ID: "one", Dimension: 2}); err == nil {
		c.Close()
		t.Error("a file was opened as the folder of the vectors")
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("what could not be opened was removed: %v", err)
	}
}
