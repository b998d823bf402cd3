package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/toolbox"
)

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func openToolbox(t *testing.T, root string) *toolbox.Toolbox {
	t.Helper()
	box, err := toolbox.Open(t.Context(), toolbox.Options{Root: root, HalfLife: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	return box
}
