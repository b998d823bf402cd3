package indexer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/store/docs"
	"cairn/internal/text/walk"
)

// keep rewrites a file with as many bytes and puts its time back, as rsync -t and
// cp -p do.
func (f *fixture) keep(name, content string) {
	f.t.Helper()
	full := filepath.Join(f.root, name)
	before, err := os.Stat(full)
	if err != nil {
		f.t.Fatal(err)
	}
	if walk.ChangeTime(before) == 0 {
		f.t.Skip("this system does not tell when a file was changed last")
	}
	if before.Size() != int64(len(content)) {
		f.t.Fatalf("%s has %d bytes, want %d", name, before.Size(), len(content))
	}
	f.write(name, content)
	if err := os.Chtimes(full, time.Time{}, before.ModTime()); err != nil {
		f.t.Fatal(err)
	}
}

// changeTimes are the recorded and the actual change time of a file.
func (f *fixture) changeTimes(name string) (recorded, actual int64) {
	f.t.Helper()
	info, err := os.Stat(filepath.Join(f.root, name))
	if err != nil {
		f.t.Fatal(err)
	}
	files, err := f.stores.Docs.Files()
	if err != nil {
		f.t.Fatal(err)
	}
	return files[name].ChangeTime, walk.ChangeTime(info)
}

// believe makes the change times of files those on record, as if no program had
// touched them: what they hold by now is seen only by a run that reads them.
func (f *fixture) believe(names ...string) {
	f.t.Helper()
	files, err := f.stores.Docs.Files()
	if err != nil {
		f.t.Fatal(err)
	}
	skipped, err := f.stores.Docs.Skipped()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, name := range names {
		_, actual := f.changeTimes(name)
		if file, ok := files[name]; ok {
			if err := f.stores.Docs.Touch(f.t.Context(), []docs.File{{Path: name, Size: file.Size, ModTime: file.ModTime, ChangeTime: actual}}); err != nil {
				f.t.Fatal(err)
			}
		}
		for i := range skipped {
			if skipped[i].Path == name {
				skipped[i].ChangeTime = actual
			}
		}
	}
	if err := f.stores.Docs.SetSkipped(f.t.Context(), skipped); err != nil {
		f.t.Fatal(err)
	}
}

// An edit that keeps size and time is seen, in indexed files and in skipped ones,
// by a full run and by one over paths; a change of attributes costs one look.
func TestKeptSizeAndTime(t *testing.T) {
	f := newFixture(t, t.TempDir(), nil)
	f.write("a.md", "# A\n\nalpha\n")
	f.write("b.md", "# B\n\nbeta\x00\n")
	f.run()
	check := func(what, want string) {
		t.Helper()
		if got := f.run().String(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", what, got, want)
		}
	}
	f.keep("a.md", "# A\n\ngamma\n")
	check("an indexed file", "files 1 (+0 ~1 -0 =0) skipped map[binary:1] unreadable 0 chunks 1 embedded 1 cached 0")
	// A skipped file is not settled in the run that finds it.
	check("nothing", "files 1 (+0 ~0 -0 =1) skipped map[binary:1] unreadable 0 chunks 1 embedded 0 cached 0")
	f.keep("b.md", "# B\n\nbetas\n")
	check("a skipped file", "files 2 (+1 ~0 -0 =1) skipped map[] unreadable 0 chunks 2 embedded 1 cached 0")

	f.keep("a.md", "# A\n\ndelta\n")
	r, err := f.Paths(t.Context(), []string{"a.md"}, nil)
	if err != nil || r.Changed != 1 {
		t.Errorf("over paths: %v, %v, want one changed", r, err)
	}
	if err := os.Chmod(filepath.Join(f.root, "a.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("attributes", "files 2 (+0 ~0 -0 =2) skipped map[] unreadable 0 chunks 2 embedded 0 cached 0")
	if recorded, actual := f.changeTimes("a.md"); recorded != actual {
		t.Errorf("the change time recorded is %d, want %d", recorded, actual)
	}
	sameAsClean(t, f.root, f.stores, f.embedder, nil)
}

// A record without a change time, as earlier versions wrote it, is compared by
// size and time alone, and gets one when the file is read.
func TestRecordWithoutChangeTime(t *testing.T) {
	f := newFixture(t, t.TempDir(), nil)
	f.write("a.md", "# A\n\nalpha\n")
	f.run()
	files, err := f.stores.Docs.Files()
	if err != nil {
		t.Fatal(err)
	}
	old := files["a.md"]
	if err := f.stores.Docs.Touch(t.Context(), []docs.File{{Path: "a.md", Size: old.Size, ModTime: old.ModTime}}); err != nil {
		t.Fatal(err)
	}
	f.keep("a.md", "# A\n\ngamma\n")
	if r := f.run(); r.Unchanged != 1 {
		t.Errorf("a record without change time: %v, want one unchanged", r)
	}
	if err := os.Chtimes(filepath.Join(f.root, "a.md"), time.Time{}, time.Unix(0, old.ModTime).Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if r := f.run(); r.Changed != 1 {
		t.Errorf("once its time has changed: %v, want one changed", r)
	}
	if recorded, actual := f.changeTimes("a.md"); recorded != actual {
		t.Errorf("the change time recorded is %d, want %d", recorded, actual)
	}
}

// The list of skipped files has the files whose extension is not indexed and those with odd
// names, so that its counts are those of the report.
func TestEverySkippedFileIsListed(t *testing.T) {
	f := newFixture(t, t.TempDir(), nil)
	odd := "a\\" + strings.Repeat("\\", 240) + ".md"
	for _, name := range []string{"a.md", "b.zip", odd} {
		if err := os.WriteFile(filepath.Join(f.root, name), []byte("# A\n"), 0o600); err != nil {
			t.Skip(err) // the system has no such names
		}
	}
	f.run()
	r := f.run()
	skipped, err := f.stores.Docs.Skipped()
	got := map[string]int{}
	for _, s := range skipped {
		got[s.Reason]++
	}
	want := map[string]int{"extension not indexed": 1, "name not usable as a path": 1}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want +listed:\n%s", err, diff)
	}
	if diff := cmp.Diff(want, r.Skipped); diff != "" {
		t.Errorf("-want +counted:\n%s", diff)
	}
}

// Files of cairn and ignore files are not in the list of skipped files; other hidden files
// are.
func TestOwnFilesAreNotSkipped(t *testing.T) {
	f := newFixture(t, t.TempDir(), nil)
	for _, name := range []string{".cairn/config.toml", ".cairn/index/docs.db", ".cairn/.gitignore", ".gitignore", "sub/.gitignore", "sub/.cairn/x", ".cairnignore", ".hidden.md"} {
		f.write(name, "# x\n")
	}
	f.run()
	skipped, err := f.stores.Docs.Skipped()
	if want := []docs.Skipped{{Path: ".hidden.md", Reason: "hidden"}}; err != nil || !slices.Equal(skipped, want) {
		t.Errorf("skipped are %v, %v, want %v", skipped, err, want)
	}
}
