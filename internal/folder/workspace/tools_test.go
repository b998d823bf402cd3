package workspace

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"cairn/internal/folder/index"
	"cairn/internal/toolbox"
)

// TestToolsOpenNoIndex: an owner that is asked about tools alone opens no file of the index.
func TestToolsOpenNoIndex(t *testing.T) {
	sel := indexedFolder(t)
	w := open(t, sel, Reading, hashed())
	if _, err := toolbox.StatsOp.Call(t.Context(), toolsOf(t, w), struct{}{}, nil); err != nil || !w.Owns() {
		t.Fatalf("Stats: %v; owner: %v", err, w.Owns())
	}
	opens := func() bool {
		files, _ := filepath.Glob("/proc/self/fd/*") // none on systems but Linux
		return slices.ContainsFunc(files, func(fd string) bool {
			path, _ := os.Readlink(fd)
			return path == filepath.Join(w.Place().Index, index.DocumentsFile)
		})
	}
	if opens() {
		t.Error("the documents are open")
	}
	if s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{}, nil); err != nil || s.State != "ready" {
		t.Errorf("the index afterwards: %+v, %v", s, err)
	}
	if runtime.GOOS == "linux" && !opens() {
		t.Error("the documents are not open")
	}
}
