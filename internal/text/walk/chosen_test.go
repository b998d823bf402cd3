package walk

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sameInParts asks for every entry of a whole walk by its own path: the answer
// is what the whole walk said of it and of what lies below. The folders visited
// are those in the file system that the walk did not leave out.
func sameInParts(t *testing.T, name string, tree *Tree, o *Options) {
	t.Helper()
	o = withDocuments(o)
	var all []Entry
	if err := tree.Walk(t.Context(), o, func(e Entry) error { all = append(all, e); return nil }); err != nil {
		t.Fatal(err)
	}
	show := func(e Entry) string { return fmt.Sprint(e.Path, " ", e.Dir, e.Size, e.ModTime, e.Reason) }
	paths := map[string]bool{"none.md": true, "x": true, "none/at/all.md": true}
	for _, e := range all {
		for p := e.Path; e.Reason != BadName && p != "."; p = filepath.ToSlash(filepath.Dir(p)) {
			paths[p] = true
		}
	}
	for p := range paths {
		var got, want []string
		if err := tree.WalkPaths(t.Context(), o, []string{p}, func(e Entry) error {
			got = append(got, show(e))
			return nil
		}); err != nil {
			t.Errorf("%s: WalkPaths(%s): %v", name, p, err)
		}
		for _, e := range all {
			// A folder on the way that is left out stands for what is in it.
			if e.Path == p || strings.HasPrefix(e.Path, p+"/") || strings.HasPrefix(p, e.Path+"/") {
				want = append(want, show(e))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: WalkPaths(%s) (-Walk +got):\n%s", name, p, diff)
		}
	}
	out := map[string]bool{}
	for _, e := range all {
		out[e.Path] = e.Reason != None
	}
	var folders, want []string
	if err := tree.Folders(t.Context(), o, nil, func(path, dir string) error {
		folders = append(folders, path)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || filepath.Join(tree.Roots()[0].Dir, path) != dir {
			t.Errorf("%s: folder %q is said to be at %s: %v", name, path, dir, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	_ = filepath.WalkDir(tree.Roots()[0].Dir, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(tree.Roots()[0].Dir, p)
		switch {
		case !d.IsDir():
			return err
		case rel == ".":
			want = append(want, "")
		case out[filepath.ToSlash(rel)] || strings.Contains(rel, "\n"):
			return fs.SkipDir
		default:
			want = append(want, filepath.ToSlash(rel))
		}
		return err
	})
	if diff := cmp.Diff(want, folders); diff != "" {
		t.Errorf("%s: Folders (-want +got):\n%s", name, diff)
	}
}

func TestWalkPathsSeveral(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{"a.md": "", "d/b.md": "", "d/e/c.md": "", "d/e/f.md": "", "g/h.md": "", "other/no.md": ""})
	write(t, other, map[string]string{"a.md": "", "d/b.md": ""})
	tree := open(t, Root{Dir: dir}, Root{Name: "other", Dir: other})
	for _, c := range []struct{ paths, want string }{
		{"", ""},
		{"d/e/c.md a.md", "a.md d/e/c.md"},
		{"d d/e/c.md", "d/b.md d/e/c.md d/e/f.md"},
		{"d/e/c.md d/e d/e/none.md", "d/e/c.md d/e/f.md"},
		{"other/d/b.md g/h.md", "g/h.md other/d/b.md"},
		{"other", "other/a.md other/d/b.md"},
		{"d/", "d/b.md d/e/c.md d/e/f.md"},
	} {
		var got []string
		if err := tree.WalkPaths(t.Context(), documents, strings.Fields(c.paths), func(e Entry) error {
			got = append(got, e.Path)
			return nil
		}); err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("WalkPaths(%s) = %v, %v, want %s", c.paths, got, err, c.want)
		}
	}
	if err := tree.WalkPaths(t.Context(), documents, []string{"../x"}, nil); err == nil {
		t.Error("WalkPaths took a path out of the workspace")
	}
	var got []string
	if err := tree.Folders(t.Context(), nil, []string{"d/e", "g", "other"}, func(p, _ string) error { got = append(got, p); return nil }); err != nil || strings.Join(got, " ") != "d/e g other other/d" {
		t.Errorf("Folders = %v, %v", got, err)
	}
}

// TestWalkPathsOfRemovedRoot: a workspace that is gone is an error, not the
// absence of every file in it.
func TestWalkPathsOfRemovedRoot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root")
	write(t, dir, map[string]string{"a.md": ""})
	tree := open(t, Root{Dir: dir})
	if err := os.RemoveAll(dir); err != nil {
		t.Skip(err) // some systems keep a folder that is open
	}
	if err := tree.WalkPaths(context.Background(), documents, []string{"a.md"}, func(Entry) error { return nil }); err == nil {
		t.Error("walking a removed root gives no error")
	}
}

func TestWants(t *testing.T) {
	wants := (&Options{Extensions: []string{".md", ".Go"}}).Wants()
	for name, want := range map[string]bool{"a.md": true, "a.MD": true, "b.go": true, "c.txt": false, "d": false, "x.yaml": true, "Package.json": true, "package-lock.json": false, "data.json": false, ".gitignore": true, ".cairnignore": true, ".md": true} {
		if wants(name) != want {
			t.Errorf("Wants(%s) = %v", name, !want)
		}
	}
	if !(*Options)(nil).Wants()("x.toml") {
		t.Error("by default .toml is not wanted")
	}
}
