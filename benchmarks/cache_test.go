package benchmarks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
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
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	otherFormat := slices.Clone(whole)
	otherFormat[8]-- // the number of the format is behind the magic
	for name, content := range map[string][]byte{"damage": []byte("not vectors"), "another format": otherFormat} {
		if err := os.WriteFile(files[0], content, 0o644); err != nil {
			t.Fatal(err)
		}
		next, err := openCache(dir, model)
		if err != nil {
			t.Fatalf("after %s: %v", name, err)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}
}
