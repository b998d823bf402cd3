package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/stage"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/usage"
)

// recordedFolder opens a folder with a tool, a usage, a question task and two cards, whose
// texts begin with name.
func recordedFolder(t *testing.T, name string) (*Workspace, config.Selection) {
	t.Helper()
	sel := folder(t)
	write(t, filepath.Join(sel.Root, ".cairn/cards/both.md"), name+" both")
	write(t, filepath.Join(sel.Root, ".cairn/cards", name, "own.md"), name+" own")
	w := open(t, sel, Owning, hashed())
	box := toolsOf(t, w)
	batch, err := catalog.Read(t.Context(), strings.NewReader(`{"server":"fs","name":"`+name+`"}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := toolbox.ImportOp.Call(t.Context(), box, toolbox.ImportRequest{Source: name, Tools: batch.Tools}, nil); err != nil {
		t.Fatal(err)
	}
	used := usage.Change{Intents: []usage.Intent{{Text: name, Tools: []string{"fs:" + name}}}}
	if _, err := toolbox.ObserveOp.Call(t.Context(), box, used, nil); err != nil {
		t.Fatal(err)
	}
	stages, err := w.Stages(&StageOptions{Workers: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stages.Create(t.Context(), stage.Request{Query: name, UserID: "u"}); err != nil {
		t.Fatal(err)
	}
	if err := stages.Close(); err != nil {
		t.Fatal(err)
	}
	return w, sel
}

// content lists everything that a backup of w contains, and every folder below .cairn.
func content(t *testing.T, w *Workspace, root string) (all []string) {
	t.Helper()
	var backup bytes.Buffer
	if _, err := w.Backup(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(backup.String(), "\n") {
		if i > 0 { // the first has the time
			all = append(all, line)
		}
	}
	err := filepath.WalkDir(filepath.Join(root, ".cairn"), func(name string, d fs.DirEntry, err error) error {
		if d.IsDir() {
			all = append(all, strings.TrimPrefix(name, root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRestoreChangesAllOrNothing lets each write of a restore fail, one at a time: records
// and files are as before. Without a failure the replaced records can be restored.
func TestRestoreChangesAllOrNothing(t *testing.T) {
	from, _ := recordedFolder(t, "new")
	var backup bytes.Buffer
	if _, err := from.Backup(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	w, sel := recordedFolder(t, "old")
	before := content(t, w, sel.Root)
	var steps []string
	for failing := 0; failing <= len(steps); failing++ {
		steps = nil
		o := RestoreOptions{Overwrite: true, step: func(name string) error {
			steps = append(steps, name)
			if len(steps) == failing+1 {
				return errors.New("the write fails")
			}
			return nil
		}}
		if _, err := w.Restore(t.Context(), bytes.NewReader(backup.Bytes()), o); err == nil || !strings.Contains(err.Error(), "the write fails") {
			t.Fatalf("write %d, %v: %v", failing, steps, err)
		}
		if diff := cmp.Diff(before, content(t, w, sel.Root)); diff != "" {
			t.Errorf("after a failure of %v (-before +after)\n%s", steps, diff)
		}
		if len(steps) == failing+1 && steps[failing] == questionsPart {
			break
		}
	}
	if want := []string{".cairn/cards/both.md", ".cairn/cards/new/own.md", "tools", "questions"}; !slices.Equal(steps, want) {
		t.Errorf("writes %v, want %v", steps, want)
	}
	report, err := w.Restore(t.Context(), bytes.NewReader(backup.Bytes()), RestoreOptions{Overwrite: true})
	if err != nil || report.Records == 0 || report.Files != 2 {
		t.Fatalf("Restore: %+v, %v", report, err)
	}
	if text, err := os.ReadFile(filepath.Join(sel.Root, ".cairn/cards/both.md")); err != nil || string(text) != "new both" {
		t.Errorf("a restored card has %q, %v", text, err)
	}
	previous, err := os.ReadFile(report.Previous)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(sel.Root, ".cairn/cards/new")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Restore(t.Context(), bytes.NewReader(previous), RestoreOptions{Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, content(t, w, sel.Root)); diff != "" {
		t.Errorf("after restoring the previous records (-before +after)\n%s", diff)
	}
}

// TestRefusedRestoreChangesNothing refuses hostile and empty backups, and places that are
// not regular files, before the first write.
func TestRefusedRestoreChangesNothing(t *testing.T) {
	w, sel := recordedFolder(t, "old")
	cards := filepath.Join(sel.Root, ".cairn/cards")
	if err := os.Symlink("../../auth.md", filepath.Join(cards, "link.md")); err != nil {
		t.Skip("no symbolic links:", err)
	}
	if err := os.Symlink("../..", filepath.Join(cards, "linked")); err != nil {
		t.Fatal(err)
	}
	before := content(t, w, sel.Root)
	file := func(name string) backupRecord { return backupRecord{File: name, Content: []byte("x")} }
	part := func(name string) backupRecord {
		return backupRecord{Line: toolbox.Line{Part: name, Bucket: "b", Key: []byte("k")}}
	}
	for name, list := range map[string][]backupRecord{
		"nothing":              nil,
		"a file elsewhere":     {file(".cairn/a.md"), file("../pwn")},
		"a link":               {file(".cairn/cards/link.md")},
		"below a link":         {file(".cairn/cards/linked/auth.md")},
		"a folder":             {file(".cairn/cards")},
		"below a file":         {file(".cairn/cards/both.md/a.md")},
		"an unknown part":      {file(".cairn/a.md"), part("secrets")},
		"records without file": {part("catalogue"), file(".cairn/../auth.md")},
	} {
		var backup bytes.Buffer
		b := kv.NewLineWriter(&backup)
		b.Write(backupRecord{Format: backupFormat})
		for _, r := range list {
			b.Write(r)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Restore(t.Context(), &backup, RestoreOptions{Overwrite: true}); err == nil {
			t.Errorf("%s: restored", name)
		}
		if diff := cmp.Diff(before, content(t, w, sel.Root)); diff != "" {
			t.Errorf("%s (-before +after)\n%s", name, diff)
		}
	}
	if _, err := w.Restore(t.Context(), io.LimitReader(zeroes{}, 2<<30), RestoreOptions{SkipDamaged: true}); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("2 GiB of zeroes: %v", err)
	}
}

// zeroes is a file without an end.
type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// TestFilesArePrivate: other users cannot read the files of an index or of the records.
func TestFilesArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the mode has no meaning")
	}
	w, sel := recordedFolder(t, "own")
	fill(t, w, index.IndexRequest{})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p := testutil.Place(t, sel.Root)
	files := 0
	for _, dir := range []string{p.Index, p.Records} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files++
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", name, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 5 {
		t.Errorf("%d files, want those of the index and of the records", files)
	}
}
