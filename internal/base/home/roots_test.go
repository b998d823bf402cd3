package home

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedRoots damages, empties, removes and replaces one of the two files of further
// folders: the list is the same, and can be changed.
func TestDamagedRoots(t *testing.T) {
	t.Setenv(Variable, t.TempDir())
	p := placeOf(t, "/srv/notes")
	older, want := map[string]string{"a": "/srv/a"}, map[string]string{"a": "/srv/a", "b": "/srv/b"}
	for _, file := range []string{rootsFile, rootsCopy} {
		path := filepath.Join(p.Records, file)
		for name, spoil := range map[string]func(before, now []byte) error{
			"1 bit":    func(_, now []byte) error { now[len(now)/2] ^= 1; return os.WriteFile(path, now, 0o600) },
			"emptied":  func(_, _ []byte) error { return os.Truncate(path, 0) },
			"removed":  func(_, _ []byte) error { return os.Remove(path) },
			"older":    func(before, _ []byte) error { return os.WriteFile(path, before, 0o600) },
			"a folder": func(_, _ []byte) error { return errors.Join(os.Remove(path), os.MkdirAll(path+"/x", 0o700)) },
			"no link":  func(_, _ []byte) error { return errors.Join(os.Remove(path), os.Symlink("nowhere", path)) },
		} {
			if err := p.SetRoots(older); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(path)
			if err := errors.Join(err, p.SetRoots(want)); err != nil {
				t.Fatal(err)
			}
			now, err := os.ReadFile(path)
			if err := errors.Join(err, spoil(before, now)); err != nil {
				t.Fatal(err)
			}
			if got, err := p.Roots(); err != nil || !maps.Equal(got, want) {
				t.Errorf("%s, %s: %v, %v, want %v", file, name, got, err, want)
			}
			if name == "a folder" {
				os.RemoveAll(path + ".damaged")
			}
		}
	}
	for _, file := range []string{rootsFile, rootsCopy} {
		path := filepath.Join(p.Records, file)
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte("{"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Roots(); err == nil || !strings.Contains(err.Error(), rootsFile) || !strings.Contains(err.Error(), "cairn roots add") {
		t.Errorf("both damaged: %v, want an error with a repair", err)
	}
}

// An unreadable file is not damaged: its owner can read it, and must not remove it.
func TestUnreadableRoots(t *testing.T) {
	t.Setenv(Variable, t.TempDir())
	p := placeOf(t, "/srv/notes")
	if err := p.SetRoots(map[string]string{"a": "/srv/a"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p.Records, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(p.Records, 0o700)
	if _, err := os.ReadDir(p.Records); err == nil {
		t.Skip("this user reads every folder")
	}
	if _, err := p.Roots(); !errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "damaged") {
		t.Errorf("unreadable: %v, want fs.ErrPermission without damage", err)
	}
}
