package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/base/owner"
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

// toolsOf returns the folder that runs the operations of the tools of w.
func toolsOf(t *testing.T, w *Workspace) *owner.Folder {
	t.Helper()
	tools, err := w.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tools
}
