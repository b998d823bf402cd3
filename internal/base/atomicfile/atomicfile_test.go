package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// check compares a file, and the other files of its folder, with what should be
// there.
func check(t *testing.T, path, want string, mode fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("the file holds %q, %v, want %q", got, err, want)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != mode {
		t.Errorf("the file's mode is %v, %v, want %v", info.Mode(), err, mode)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("beside the file lies %v, %v", all, err)
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.toml")
	for _, c := range []struct {
		content string
		mode    fs.FileMode
	}{{"first", 0o640}, {"second", 0o600}, {"", 0o755}} {
		if err := Write(path, []byte(c.content), c.mode); err != nil {
			t.Fatal(err)
		}
		check(t, path, c.content, c.mode)
	}
}

// TestWriteInStaysInside: a link out of the root is not followed, and permissions stay.
func TestWriteInStaysInside(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	path := filepath.Join(dir, "a", "b.toml")
	for _, mode := range []fs.FileMode{0o640, 0o600} {
		if err := WriteIn(root, filepath.Join("a", "b.toml"), []byte("text"), mode); err != nil {
			t.Fatal(err)
		}
		check(t, path, "text", 0o640)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Skip(err)
	}
	if err := WriteIn(root, filepath.Join("out", "b.toml"), nil, 0o600); err == nil {
		t.Error("a link out of the root was followed")
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside there is %v, %v", left, err)
	}
}

func TestOldFileStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.toml")
	if err := Write(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Create(path, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("half of the n"); err != nil {
		t.Fatal(err)
	}
	f.Discard()
	f.Discard()
	check(t, path, "old", 0o600)

	if f, err = Create(path, 0o644); err != nil {
		t.Fatal(err)
	}
	f.Close() // as if its process had been killed
	RemoveLeftovers(path)
	check(t, path, "old", 0o600)

	f, err = Create(path, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	f.Close() // what is written to it is lost: so is the commit
	if err := f.Commit(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Commit of a file that cannot be written = %v, want os.ErrClosed", err)
	}
	f.Discard()
	check(t, path, "old", 0o600)

	folder := filepath.Join(t.TempDir(), "b")
	if err := os.MkdirAll(filepath.Join(folder, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(folder, []byte("new"), 0o600); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(folder), ".b.*")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	if err := Write(filepath.Join(folder, "absent", "c"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in an absent folder: %v, want fs.ErrNotExist", err)
	}
}

// A killed process leaves its temporary file. A later writer of any file of the folder removes
// it when it is old, and leaves a new one, which may have a writer.
func TestCreateRemovesOldLeftovers(t *testing.T) {
	dir := t.TempDir()
	old, recent := filepath.Join(dir, ".cairn-a.db.1.tmp"), filepath.Join(dir, ".cairn-a.db.2.tmp")
	for name, age := range map[string]time.Duration{old: 2 * oldLeftover, recent: 0} {
		then := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(name, []byte("part"), 0o600), os.Chtimes(name, then, then)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(filepath.Join(dir, "b.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old file: %v, want fs.ErrNotExist", err)
	}
	if _, err := os.Stat(recent); err != nil {
		t.Errorf("the recent file: %v", err)
	}
}

func TestSyncDir(t *testing.T) {
	dir := t.TempDir()
	if err := SyncDir(dir); err != nil {
		t.Error(err)
	}
	if err := SyncDir(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of an absent folder: %v, want fs.ErrNotExist", err)
	}
}

func TestLineEnds(t *testing.T) {
	for _, c := range []struct{ old, text, want string }{
		{"", "a\n", "a\n"},
		{"a", "a\nb\r\n", "a\nb\r\n"},
		{"a\r\n", "a\r\nb\n", "a\r\nb\r\n"},
		{"a\r\nb", "a\nb\n", "a\r\nb\r\n"},
		{"a\r\nb\n", "a\r\nb\nc\n", "a\r\nb\nc\n"},
	} {
		if got := string(LineEnds([]byte(c.old), []byte(c.text))); got != c.want {
			t.Errorf("LineEnds(%q, %q) = %q, want %q", c.old, c.text, got, c.want)
		}
	}
}
