package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/base/owner"
	"cairn/internal/base/testutil"
	"cairn/internal/folder/index"
	"cairn/internal/stage"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/usage"
)

// learn imports a tool and observes two that were used together.
func learn(t *testing.T, root, source, tool, other string) {
	t.Helper()
	box := openToolbox(t, root)
	batch, err := catalog.Read(t.Context(), strings.NewReader(`{"server":"s","name":"`+tool+`"}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.Import(t.Context(), source, batch.Tools); err != nil {
		t.Fatal(err)
	}
	if _, err := box.Learn(t.Context(), usage.Trace{Intent: "use " + tool, Calls: []usage.Call{{Tool: tool}, {Tool: other}}}); err != nil {
		t.Fatal(err)
	}
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
}

// former makes what is kept of a folder look as an earlier version has kept it.
func former(t *testing.T, root string) string {
	t.Helper()
	place, dir := testutil.Place(t, root), filepath.Join(root, ".cairn", "index")
	for _, from := range []string{place.Index, place.Records} {
		if err := os.Remove(filepath.Join(from, "folder")); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		remove(t, from)
	}
	write(t, filepath.Join(root, ".cairn", ".gitignore"), "/index/\n/.gitignore\n")
	return dir
}

func TestMigrate(t *testing.T) {
	sel := folder(t)
	w := open(t, sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	w.Close()
	learn(t, sel.Root, "old", "read", "write")
	st, err := OpenStages(sel, &StageOptions{Workers: -1})
	if err != nil {
		t.Fatal(err)
	}
	task, err := st.Create(t.Context(), stage.Request{UserID: "ann", Query: "Who is on call?"})
	if err != nil {
		t.Fatal(err)
	}
	st.Close()
	dir := former(t, sel.Root)
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, outside, "precious")
	if err := os.Symlink(outside, filepath.Join(dir, "vectors", "link")); err != nil {
		t.Skip(err)
	}
	learn(t, sel.Root, "new", "copy", "read") // before the user migrates
	if found, fix := Former(sel.Root); !strings.Contains(found, "not used") || !strings.Contains(fix, "cairn migrate") {
		t.Errorf("Former = %q, %q", found, fix)
	}

	w = open(t, sel, Reading, hashed())
	held, err := owner.Lock(t.Context(), dir, index.LockFile, "an earlier cairn")
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Migrate(t.Context())
	if lock, ok := errors.AsType[*owner.LockError](err); !ok || lock.Holder.Command != "an earlier cairn" {
		t.Errorf("migrating what an earlier version uses: %v, want a *LockError", err)
	}
	if err := held(); err != nil {
		t.Fatal(err)
	}
	serves := openToolbox(t, sel.Root) // a server does not have to be stopped
	r, err := w.Migrate(t.Context())
	if err != nil || !r.Found || r.Records < 5 || !r.Embeddings || r.Damaged != nil {
		t.Fatalf("Migrate = %+v, %v", r, err)
	}
	if s, err := serves.Stats(t.Context()); err != nil || s.Tools != 2 || len(s.Sources) != 2 || s.Usage.Edges != 2 || s.Usage.Intents != 2 {
		t.Errorf("the tools are %+v, %v, want both, with both edges and intents", s, err)
	}
	if st, err = OpenStages(sel, &StageOptions{Workers: -1}); err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if got, err := st.Task(t.Context(), task.ID); err != nil || got.ID != task.ID {
		t.Errorf("the question task is %+v, %v", got, err)
	}
	if report := fill(t, w, index.IndexRequest{}); report.Files != 3 || report.Embedded != 0 || report.Cached == 0 {
		t.Errorf("indexing embeds %+v, want all vectors taken over", report)
	}
	found, _ := Former(sel.Root)
	if left, _ := os.ReadDir(filepath.Join(sel.Root, ".cairn")); len(left) > 0 || found != "" {
		t.Errorf(".cairn has %v, %q, want nothing", left, found)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "precious" {
		t.Errorf("the file outside has %q, %v", text, err)
	}
	if r, err := w.Migrate(t.Context()); err != nil || r.Found {
		t.Errorf("a second time: %+v, %v", r, err)
	}
}

// TestMigrateKeepsWhatIsDamaged: whole records are taken over and the files stay.
func TestMigrateKeepsWhatIsDamaged(t *testing.T) {
	sel := folder(t)
	learn(t, sel.Root, "old", "read", "write")
	dir := former(t, sel.Root)
	path := filepath.Join(dir, "usage.db")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(content), "use read")
	content[at] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	w := open(t, sel, Reading, hashed())
	r, err := w.Migrate(t.Context())
	if err != nil || len(r.Damaged) != 1 || !strings.Contains(r.Damaged[0], "usage.db") {
		t.Errorf("Migrate = %+v, %v, want the damage told", r, err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(content) {
		t.Errorf("the damaged file changed, %v", err)
	}
	box := openToolbox(t, sel.Root)
	if s, err := box.Stats(t.Context()); err != nil || s.Tools != 1 || s.Usage.Edges != 1 {
		t.Errorf("the tools are %+v, %v, want the whole records", s, err)
	}
}
