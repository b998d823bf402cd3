package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/retriever"
)

// eventually asks until ok, which an owner that works in the background makes true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testutil.Await(t, func() string {
		if ok() {
			return ""
		}
		return what
	})
}

// remove removes a folder under processes that may be adding to it.
func remove(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "removing "+dir, func() bool { return os.RemoveAll(dir) == nil })
}

// answers reports whether a search finds the documents of folder.
func answers(t *testing.T, w *Workspace) bool {
	t.Helper()
	a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login flow"}, nil)
	return err == nil && len(a.Results) > 0 && a.Results[0].Path == "auth.md" && a.Index.State == "ready"
}

// TestRemovedIndexIsMadeAgain: the owner of a folder whose index is removed makes it
// again at the next call of Index, or by itself; its clients see the new one.
func TestRemovedIndexIsMadeAgain(t *testing.T) {
	for _, watch := range []bool{false, true} {
		for _, below := range []string{"", documentsFile, keywordFolder, vectorFolder} {
			sel := folder(t)
			o := hashed()
			o.Watch, o.Background = watch, watch
			w, asks := open(t, sel, Owning, o), open(t, sel, Owning, hashed())
			fill(t, w, index.IndexRequest{Join: true})
			if !answers(t, asks) {
				t.Fatal("no answer through the owner")
			}
			remove(t, filepath.Join(testutil.Place(t, sel.Root).Index, below))
			if watch {
				eventually(t, "indexed again by itself", func() bool { return answers(t, w) })
			}
			if report := fill(t, w, index.IndexRequest{Join: true}); report.Files != 3 || report.Pending != 0 {
				t.Errorf("%s, watch %v: Index after the removal = %+v, want 3 files", below, watch, report)
			}
			for name, each := range map[string]*Workspace{"the owner": w, "who asks it": asks} {
				if !answers(t, each) {
					t.Errorf("%s, watch %v: %s does not answer", below, watch, name)
				}
			}
			owners := 0
			for _, each := range []*Workspace{w, asks} {
				if each.Folder.Owns() {
					owners++
				}
			}
			if owners != 1 {
				t.Errorf("%s, watch %v: %d owners, want 1", below, watch, owners)
			}
			for _, each := range []*Workspace{w, asks} {
				if err := each.Close(); err != nil {
					t.Errorf("%s, watch %v: Close = %v", below, watch, err)
				}
			}
		}
	}
}

// TestRemovedFolder removes the folder: calls and watchers get an error of its own,
// and once the folder is back it is indexed.
func TestRemovedFolder(t *testing.T) {
	sel := folder(t)
	o := hashed()
	o.Watch, o.Background = true, true
	w := open(t, sel, Owning, o)
	fill(t, w, index.IndexRequest{Join: true})
	events := following(t, w)
	until(t, events, "the first", func(index.WatchEvent) bool { return true })
	aside := sel.Root + ".aside"
	if err := os.Rename(sel.Root, aside); err != nil {
		t.Fatal(err)
	}
	missing := func(what string, err error) {
		t.Helper()
		if gone, ok := errors.AsType[*FolderError](err); !ok || gone.Root != sel.Root || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s = %v, want a *FolderError", what, err)
		}
	}
	_, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login"}, nil)
	missing("Search", err)
	_, err = index.IndexOp.Call(t.Context(), w.Folder, index.IndexRequest{}, nil)
	missing("Index", err)
	_, err = index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
	missing("Status", err)
	_, err = Open(t.Context(), sel, config.Default(), Reading, hashed())
	missing("Open", err)
	if _, err := os.Stat(sel.Root); err == nil {
		t.Error("the folder was made by who looked for it")
	}
	until(t, events, "that the folder is missing", func(e index.WatchEvent) bool { return e.Problem == (&FolderError{sel.Root}).Error() })
	if err := os.CopyFS(sel.Root, os.DirFS(folder(t).Root)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "indexed again by itself", func() bool { return answers(t, w) })
	write(t, filepath.Join(sel.Root, "new.md"), "# New\n\nzebra\n")
	finds(t, w, events, byKeyword("zebra"), "new.md")
}

// TestCloseAfterRemoval: closing an owner whose folder was removed succeeds, and
// leaves alone what another owner has made since.
func TestCloseAfterRemoval(t *testing.T) {
	sel := folder(t)
	first := open(t, sel, Owning, hashed())
	fill(t, first, index.IndexRequest{})
	remove(t, first.place.Index)
	second := open(t, sel, Owning, hashed())
	fill(t, second, index.IndexRequest{})
	if err := first.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if s, err := index.StatusOp.Call(t.Context(), second.Folder, index.StatusRequest{Selection: second.Selection()}, nil); err != nil || s.Owner == nil || !second.Folder.Owns() {
		t.Errorf("the second owner's status: %+v, %v", s, err)
	}
	third := open(t, sel, Owning, hashed())
	if third.Folder.Owns() {
		t.Error("the third owns the folder, want it to ask the second")
	}
	if !answers(t, third) {
		t.Error("the third gets no answer")
	}
}
