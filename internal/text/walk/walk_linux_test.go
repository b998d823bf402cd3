package walk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// A file and a folder without permission are entries, never an absence.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": "a", "closed/b.md": "b", "d/c.md": "c", "listed/e.md": "e"})
	for _, p := range []string{"a.md", "closed"} {
		if err := os.Chmod(filepath.Join(dir, p), 0); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod(filepath.Join(dir, "closed"), 0o755)
	if err := os.Chmod(filepath.Join(dir, "listed"), 0o444); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "listed"), 0o755)
	tree := open(t, Root{Dir: dir})

	type result struct {
		reasons map[string]Reason
		err     error
		read    error
	}
	done := make(chan result)
	go func() {
		if os.Geteuid() == 0 {
			// Root may read everything, so this thread acts as user 65534. It
			// is never unlocked and ends with the goroutine.
			runtime.LockOSThread()
			_ = syscall.Setfsuid(65534)
		}
		r := result{reasons: map[string]Reason{}}
		r.err = tree.Walk(context.Background(), documents, func(e Entry) error {
			r.reasons[e.Path] = e.Reason
			return nil
		})
		_, _, r.read = tree.ReadFile("a.md", 0)
		part := map[string]Reason{}
		if err := tree.WalkPaths(context.Background(), documents, []string{"closed/b.md", "d/c.md", "listed/e.md"}, func(e Entry) error {
			part[e.Path] = e.Reason
			return nil
		}); err != nil || len(part) != 3 || part["closed"] != Unreadable || part["listed"] != Unreadable || part["d/c.md"] != None {
			t.Errorf("walking a path below a closed folder: %v, %v", part, err)
		}
		done <- r
	}()
	r := <-done
	if r.err != nil || r.reasons["closed"] != Unreadable || r.reasons["d/c.md"] != None || r.reasons["listed"] != Unreadable || len(r.reasons) != 4 {
		t.Errorf("walk: got %v, %v", r.reasons, r.err)
	}
	if !errors.Is(r.read, fs.ErrPermission) || errors.Is(r.read, fs.ErrNotExist) {
		t.Errorf("reading without permission: got %v", r.read)
	}
}
