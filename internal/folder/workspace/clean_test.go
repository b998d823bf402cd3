package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/base/home"
	"cairn/internal/base/owner"
	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/usage"
)

// learn imports a tool and observes two that were used together.
func learn(t *testing.T, root, source, tool, other string) {
	t.Helper()
	w := open(t, config.Selection{Root: root}, Reading, hashed())
	box := toolsOf(t, w)
	batch, err := catalog.Read(t.Context(), strings.NewReader(`{"server":"s","name":"`+tool+`"}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := toolbox.ImportOp.Call(t.Context(), box, toolbox.ImportRequest{Source: source, Tools: batch.Tools}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := toolbox.LearnOp.Call(t.Context(), box, []usage.Trace{{Intent: "use " + tool, Calls: []usage.Call{{Tool: tool}, {Tool: other}}}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCleanOrphans removes what is kept of folders that do not exist any more, and
// nothing of others.
func TestCleanOrphans(t *testing.T) {
	t.Setenv(home.Variable, t.TempDir())
	kept, gone := folder(t), folder(t)
	for _, sel := range []config.Selection{kept, gone} {
		w := open(t, sel, Owning, hashed())
		fill(t, w, index.IndexRequest{})
		learn(t, sel.Root, "list", "read", "write")
		w.Close()
	}
	remove(t, gone.Root)
	place, other := testutil.Place(t, gone.Root), testutil.Place(t, kept.Root)
	for _, step := range []struct {
		all, try bool
		want     []string
		left     map[string]bool
	}{
		{true, true, []string{place.Index, place.Records}, map[string]bool{place.Index: true, place.Records: true}},
		{false, false, []string{place.Index}, map[string]bool{place.Index: false, place.Records: true}},
		{true, false, []string{place.Index, place.Records}, map[string]bool{place.Index: false, place.Records: false, other.Index: true, other.Records: true}},
	} {
		r, err := CleanOrphans(t.Context(), "test", step.all, step.try)
		if err != nil || !slices.Equal(r.Removed, step.want) || r.Bytes == 0 {
			t.Errorf("all %v, try %v: %+v, %v, want %v", step.all, step.try, r, err, step.want)
		}
		for dir, want := range step.left {
			if _, err := os.Stat(dir); (err == nil) != want {
				t.Errorf("all %v, try %v: %s: %v, want it there: %v", step.all, step.try, dir, err, want)
			}
		}
	}
}

func TestClean(t *testing.T) {
	sel := folder(t)
	w := open(t, sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	_, err := Clean(t.Context(), sel, "test", false, false)
	if lock, ok := errors.AsType[*owner.LockError](err); !ok || lock.Holder.PID != os.Getpid() {
		t.Errorf("cleaning a folder in use: %v, want a LockError", err)
	}
	w.Close()
	dir := testutil.Place(t, sel.Root).Index
	write(t, filepath.Join(dir, "other"), "what is not derived stays")
	r, err := Clean(t.Context(), sel, "test", false, true)
	if err != nil || r.Bytes == 0 || len(r.Removed) != 2 {
		t.Errorf("trying: %+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(dir, documentsFile)); err != nil {
		t.Errorf("trying removed something: %v", err)
	}
	again, err := Clean(t.Context(), sel, "test", false, false)
	if err != nil || again.Bytes != r.Bytes {
		t.Errorf("Clean = %+v, %v, want %+v", again, err, r)
	}
	for name, want := range map[string]bool{documentsFile: false, keywordFolder: false, vectorFolder: true, "other": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s after cleaning: %v", name, err)
		}
	}
	if r, err := Clean(t.Context(), sel, "test", true, false); err != nil || len(r.Removed) != 1 {
		t.Errorf("cleaning all: %+v, %v", r, err)
	}
	if r, err := Clean(t.Context(), config.Selection{Root: t.TempDir()}, "test", true, false); err != nil || len(r.Removed) != 0 {
		t.Errorf("cleaning nothing: %+v, %v", r, err)
	}
	if report := fill(t, open(t, sel, Owning, hashed()), index.IndexRequest{}); report.Files != 3 {
		t.Errorf("indexing after cleaning: %+v", report)
	}
}
