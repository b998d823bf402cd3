//go:build unix

package home

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestSettle puts pipes and directories in the place of private files. Roots and Make do not
// wait for a writer of a pipe, and remove what no file can replace.
func TestSettle(t *testing.T) {
	t.Setenv(Variable, t.TempDir())
	p, want := placeOf(t, "/srv/notes"), map[string]string{"a": "/srv/a"}
	if err := p.SetRoots(want); err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Join(p.Records, "catalog.db"), filepath.Join(p.Index, "keywords", "root.bolt"), filepath.Join(p.Records, rootsFile)}
	for _, name := range []string{label, "lock"} {
		paths = append(paths, filepath.Join(p.Index, name))
	}
	for _, path := range paths {
		err := errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := p.Roots(); err != nil || !maps.Equal(got, want) {
		t.Errorf("Roots = %v, %v, want %v", got, err, want)
	}
	if err := p.Make(); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			t.Errorf("%s is %v", path, info.Mode())
		}
	}
	lock := filepath.Join(p.Index, "lock")
	if err := errors.Join(os.MkdirAll(filepath.Join(lock, "x"), 0o700), p.Make(), os.WriteFile(lock, nil, 0o600)); err != nil {
		t.Errorf("a directory in the place of the lock: %v", err)
	}
}
