package flat

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDirectoryInsteadOfFile: a directory with the name of the file is damage, which
// OpenOrReplace replaces.
func TestDirectoryInsteadOfFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, fileName, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, 4, "m", nil); !Unusable(err) {
		t.Errorf("Open: %v, want damage", err)
	}
	s, err := OpenOrReplace(dir, 4, "m", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
