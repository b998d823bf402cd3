package home

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// TestFollow moves a folder: its records and its index move with it. They stay when the folder
// was removed or copied, also if another folder then has its number.
func TestFollow(t *testing.T) {
	t.Setenv(Variable, t.TempDir())
	top := t.TempDir()
	old, moved := placeOf(t, filepath.Join(top, "old")), placeOf(t, filepath.Join(top, "moved"))
	dirs := map[string]string{"a": "/srv/a"}
	for _, err := range []error{os.Mkdir(old.Root, 0o700), old.SetRoots(dirs), os.WriteFile(filepath.Join(old.Index, "documents.db"), nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if identity(old.Root) == "" {
		t.Skip("this file system does not keep when a folder was made")
	}
	follow := func(to Place, want map[string]string) {
		t.Helper()
		to.Follow()
		if got, err := to.Roots(); err != nil || !maps.Equal(got, want) {
			t.Errorf("the further folders of %s are %v, %v, want %v", to.Root, got, err, want)
		}
	}
	if err := os.Mkdir(moved.Root, 0o700); err != nil {
		t.Fatal(err)
	}
	follow(moved, nil) // a copy
	for _, err := range []error{os.Remove(moved.Root), os.Rename(old.Root, moved.Root)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	follow(moved, dirs)
	if _, err := os.Stat(filepath.Join(moved.Index, "documents.db")); err != nil {
		t.Errorf("the index does not follow: %v", err)
	}
	if err := moved.Make(); err != nil {
		t.Fatal(err)
	}
	if all, err := All(); err != nil || len(all) != 1 || all[0] != moved {
		t.Errorf("All = %+v, %v, want %+v", all, err, moved)
	}
	for _, err := range []error{os.Remove(moved.Root), os.Mkdir(old.Root, 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	follow(old, nil) // another folder
}
