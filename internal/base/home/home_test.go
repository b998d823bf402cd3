package home

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func placeOf(t *testing.T, root string) Place {
	t.Helper()
	p, err := Of(root)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlacesOfAFolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the variables are those of Linux")
	}
	for _, variable := range []string{Variable, "XDG_CACHE_HOME", "XDG_DATA_HOME", "HOME"} {
		t.Setenv(variable, "")
	}
	if _, err := Of("/srv/notes"); err == nil || !strings.Contains(err.Error(), Variable) {
		t.Errorf("without a home: %v, want an error that names %s", err, Variable)
	}
	t.Setenv("HOME", "relative")
	if p, err := Of("/srv/notes"); err == nil {
		t.Errorf("places below the working folder: %+v", p)
	}
	t.Setenv("HOME", "/home/me")
	p := placeOf(t, "/srv/my notes")
	if !strings.HasPrefix(p.Index, "/home/me/.cache/cairn/my-notes-") || !strings.HasPrefix(p.Records, "/home/me/.local/share/cairn/my-notes-") {
		t.Errorf("places %+v", p)
	}
	if other := placeOf(t, "/srv/my_notes"); other.Index == p.Index {
		t.Error("two folders have one place")
	}
	if long := placeOf(t, "/"+strings.Repeat("x", 300)); len(filepath.Base(long.Index)) > maxBase+17 {
		t.Errorf("the name %s is long", long.Index)
	}
	t.Setenv("XDG_DATA_HOME", "/data")
	if p := placeOf(t, "/srv/notes"); !strings.HasPrefix(p.Records, "/data/cairn/notes-") {
		t.Errorf("with XDG_DATA_HOME: %+v", p)
	}
	t.Setenv(Variable, "/var/lib/cairn")
	if p := placeOf(t, "/srv/notes"); !strings.HasPrefix(p.Index, "/var/lib/cairn/cache/notes-") || !strings.HasPrefix(p.Records, "/var/lib/cairn/data/notes-") {
		t.Errorf("with %s: %+v", Variable, p)
	}
	if p, err := Of("/var/lib"); err == nil {
		t.Errorf("places within the folder: %+v", p)
	}
	t.Setenv(Variable, "relative")
	if _, err := Of("/srv/notes"); err == nil {
		t.Errorf("a relative %s is accepted", Variable)
	}
}

// TestHomeIsAFile: a CAIRN_HOME that is a file, or below one, is an error that names the
// variable and says what to do.
func TestHomeIsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		t.Setenv(Variable, dir)
		_, of := Of("/srv/notes")
		_, all := All()
		_, trusted := TrustedFolders()
		for name, err := range map[string]error{"Of": of, "All": all, "TrustedFolders": trusted, "Trust": Trust("/srv/notes", nil)} {
			if err == nil || !strings.Contains(err.Error(), Variable+" is") || !strings.Contains(err.Error(), "not a directory; set it to") {
				t.Errorf("%s with %s=%s: %v, want an error that says what to do", name, Variable, dir, err)
			}
		}
	}
}

// TestDataDirectoryIsAFile: if a parent of the records is a file, the error says what to set.
func TestDataDirectoryIsAFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the variables are those of Linux")
	}
	t.Setenv(Variable, "")
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"file", "file/share"} {
		t.Setenv("XDG_DATA_HOME", filepath.Join(dir, data))
		if _, err := Of("/srv/notes"); err == nil || !strings.Contains(err.Error(), "set "+Variable) {
			t.Errorf("%s: %v, want an error that names %s", data, err, Variable)
		}
	}
}

// TestHostilePlaces: directories that others made, can write or have replaced by a link
// are refused, and nothing is written through them.
func TestHostilePlaces(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes and users of Unix")
	}
	for name, spoil := range map[string]func(dir string) error{
		"a link":          func(dir string) error { return os.Symlink(t.TempDir(), dir) },
		"a dangling link": func(dir string) error { return os.Symlink(filepath.Join(t.TempDir(), "missing"), dir) },
		"writable by all": func(dir string) error { return os.Chmod(dir, 0o777) },
		"another user's":  func(dir string) error { return os.Chown(dir, 65534, 65534) },
		"a file":          func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
	} {
		for _, part := range []string{"cache", "data", "index", "records"} {
			top := t.TempDir()
			t.Setenv(Variable, top)
			p := placeOf(t, "/srv/notes")
			dir := map[string]string{"cache": filepath.Dir(p.Index), "data": filepath.Dir(p.Records), "index": p.Index, "records": p.Records}[part]
			if name == "another user's" && os.Geteuid() != 0 {
				continue
			}
			if err := p.Make(); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(name, "link") || name == "a file" {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			if err := p.Make(); err == nil || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s is %s: %v, want an error that names it", part, name, err)
			}
		}
	}
}

// TestDamagedLabel damages every byte of the label, truncates and removes it: Make
// writes it again.
func TestDamagedLabel(t *testing.T) {
	t.Setenv(Variable, t.TempDir())
	p := placeOf(t, "/srv/notes")
	if err := p.Make(); err != nil {
		t.Fatal(err)
	}
	whole := []byte(p.Root + "\n")
	damaged := [][]byte{nil, whole[:4], []byte("/other\n"), make([]byte, len(whole))}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1 << (i % 8)
		damaged = append(damaged, flipped)
	}
	for _, dir := range []string{p.Index, p.Records} {
		name := filepath.Join(dir, label)
		if err := errors.Join(os.Remove(name), os.MkdirAll(filepath.Join(name, "x"), 0o700), p.Make()); err != nil {
			t.Errorf("a directory instead of a label: %v", err)
		}
		if got, _ := labelOf(dir); got != p.Root {
			t.Errorf("after a directory instead of a label it is %q, want %q", got, p.Root)
		}
		for _, text := range damaged {
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := p.Make(); err != nil {
				t.Errorf("label %q: %v", text, err)
			}
			if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, whole) {
				t.Errorf("label %q became %q, %v, want %q", text, got, err, whole)
			}
		}
	}
}

func TestMakeIsPrivate(t *testing.T) {
	t.Setenv(Variable, filepath.Join(t.TempDir(), "not", "there"))
	p := placeOf(t, "/srv/notes")
	for range 2 {
		if err := p.Make(); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{p.Index, p.Records, filepath.Dir(p.Index), filepath.Dir(p.Records)} {
		if info, err := os.Stat(dir); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v, want mode 0700", dir, info, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(filepath.Dir(p.Index), "unlabelled"), 0o700); err != nil {
		t.Fatal(err)
	}
	if all, err := All(); err != nil || !slices.Equal(all, []Place{p}) {
		t.Errorf("All = %+v, %v, want %+v", all, err, p)
	}
}

// TestTrust changes the list. A folder is trusted with the configuration that the user has
// seen.
func TestTrust(t *testing.T) {
	t.Setenv(Variable, t.TempDir())
	path, err := trustFile()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Trust("/b", nil), Trust("/a c", []byte("x = 1")), Trust("/b", []byte("y = 1")), Distrust("/b")); err != nil {
		t.Fatal(err)
	}
	if got, err := TrustedFolders(); err != nil || !slices.Equal(got, []string{"/a c"}) {
		t.Errorf("TrustedFolders = %q, %v", got, err)
	}
	for _, test := range []struct {
		root, configuration string
		listed, configured  bool
	}{
		{"/a c", "x = 1", true, true}, {"/a c", "x = 2", true, false}, {"/a c", "", true, false},
		{"/a", "x = 1", false, false}, {"/b", "y = 1", false, false},
	} {
		if listed, configured := Trusts(test.root, []byte(test.configuration)); listed != test.listed || configured != test.configured {
			t.Errorf("Trusts(%q, %q) = %v, %v", test.root, test.configuration, listed, configured)
		}
	}
	if err := Trust("/x\n/etc", nil); err == nil {
		t.Error("a line break adds a line")
	}
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permissions of others")
	}
	for name, spoil := range map[string]func() error{
		"writable by all": func() error { return os.Chmod(path, 0o666) },
		"a link":          func() error { return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path)) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if listed, _ := Trusts("/a c", []byte("x = 1")); listed {
			t.Errorf("a list that is %s is believed", name)
		}
	}
}
