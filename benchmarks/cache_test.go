package benchmarks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/testutil"
)

func TestCacheIsOfOneRun(t *testing.T) {
	dir, model := t.TempDir(), (&testutil.HashEmbedder{}).Description()
	first, err := openCache(dir, model)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openCache(dir, model); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("a second run: %v", err)
	}
	if _, err := Tools(t.Context(), ToolsOptions{Data: writeToolSet(t), Embedder: &testutil.HashEmbedder{}, Cache: dir}); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("a second run that measures tools: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*.cairn"))
	if len(files) != 1 {
		t.Fatalf("files of the cache: %v", files)
	}
	if err := os.WriteFile(files[0], []byte("not vectors"), 0o644); err != nil {
		t.Fatal(err)
	}
	second, err := openCache(dir, model)
	if err != nil {
		t.Fatalf("after damage: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}
