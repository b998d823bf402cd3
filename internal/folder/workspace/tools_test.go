package workspace

import (
	"path/filepath"
	"testing"

	"cairn/internal/folder/index"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox"
)

// TestToolsOpenNoIndex: an owner that is asked about tools alone opens no file of the index.
func TestToolsOpenNoIndex(t *testing.T) {
	sel := indexedFolder(t)
	w := open(t, sel, Reading, hashed())
	if _, err := toolbox.StatsOp.Call(t.Context(), toolsOf(t, w), struct{}{}, nil); err != nil || !w.Owns() {
		t.Fatalf("Stats: %v; owner: %v", err, w.Owns())
	}
	db, err := kv.Open(filepath.Join(w.Place().Index, documentsFile), nil) // fails while it is open elsewhere
	if err != nil {
		t.Fatalf("the documents are open: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{}, nil); err != nil || s.State != "ready" {
		t.Errorf("the index afterwards: %+v, %v", s, err)
	}
}
