package walk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"x.md": "secret"})
	write(t, dir, map[string]string{"a.md": "a", "d/e/b.md": "b", "d/e/c.md": "c", "d/link": "->e", "out": "->" + outside})
	tree := open(t, Root{Dir: dir})
	l := tree.Lookup()
	defer l.Close()
	for range 2 { // with and without open folders
		for path, want := range map[string]error{
			"a.md": nil, "d/e/b.md": nil, "d/e/c.md": nil, "d/e": nil,
			"d/link/b.md": ErrSymlink, "d/link": ErrSymlink, "out/x.md": ErrSymlink, "d/../out/x.md": ErrSymlink,
			"d/e/none.md": fs.ErrNotExist, "none/a.md": fs.ErrNotExist, "a.md/b.md": fs.ErrNotExist, "../x.md": ErrPath,
		} {
			info, err := l.Stat(path)
			if !errors.Is(err, want) || err == nil && info.Name() != filepath.Base(path) {
				t.Errorf("Stat(%q): got %v, %v, want error %v", path, info, err, want)
			}
		}
	}
	if _, err := l.Stat("d/e/none.md"); err == nil || !strings.Contains(err.Error(), "d/e/none.md") {
		t.Errorf("Stat of a missing file: the error %v does not name its path", err)
	}
}

// A Lookup checks and opens a folder once, whatever the number of its files.
func TestLookupOpensAFolderOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"d/e/b.md": "b", "d/e/c.md": "c"})
	tree := open(t, Root{Dir: dir})
	l := tree.Lookup()
	defer l.Close()
	if _, err := l.Stat("d/e/b.md"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Stat("d/e/c.md"); err != nil {
		t.Errorf("the second file of a folder: %v", err)
	}
	if _, err := tree.Stat("d/e/c.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a new Lookup: got %v, want fs.ErrNotExist", err)
	}
}

// The folders of a Lookup cost file descriptors, so it keeps a bounded number open.
func TestLookupBoundsOpenFolders(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{strings.Repeat("d/", 3*maxLookup) + "deep.md": ""}
	for i := range 3 * maxLookup {
		files[fmt.Sprintf("wide/f%d/a.md", i)] = ""
	}
	write(t, dir, files)
	l := open(t, Root{Dir: dir}).Lookup()
	defer l.Close()
	for path := range files {
		if _, err := l.Stat(path); err != nil {
			t.Errorf("Stat(%q): %v", path, err)
		}
		if len(l.folders) > maxLookup {
			t.Fatalf("%d folders are open after %q, want at most %d", len(l.folders), path, maxLookup)
		}
	}
}

// BenchmarkLookup looks at the ten files of a page: all in one folder, and each in a
// folder of its own.
func BenchmarkLookup(b *testing.B) {
	for name, pattern := range map[string]string{"one folder": "docs/guide/f%d.md", "ten folders": "docs/guide%d/f.md"} {
		b.Run(name, func(b *testing.B) {
			dir, files, paths := b.TempDir(), map[string]string{}, []string{}
			for i := range 10 {
				paths = append(paths, fmt.Sprintf(pattern, i))
				files[paths[i]] = ""
			}
			write(b, dir, files)
			tree := open(b, Root{Dir: dir})
			for b.Loop() {
				l := tree.Lookup()
				for _, p := range paths {
					if _, err := l.Stat(p); err != nil {
						b.Fatal(err)
					}
				}
				l.Close()
			}
		})
	}
}
