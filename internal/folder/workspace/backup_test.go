package workspace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/graphrank"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/stage"
	"cairn/internal/store/kv"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/usage"
	"cairn/retriever"
)

// handbookFolder is a copy of the example's documents.
func handbookFolder(t *testing.T) config.Selection {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(root, os.DirFS("../../../examples/handbook")); err != nil {
		t.Fatal(err)
	}
	return config.Selection{Root: root, Rule: config.RuleFlag}
}

// answersOf200 asks 200 queries, with a document in use, and returns what is found.
func answersOf200(t *testing.T, w *Workspace) []string {
	t.Helper()
	words := strings.Fields("token rotate backup restore index search keyword vector incident severity role reader editor operator secret gateway change request handbook limit rate glossary section document")
	var answers []string
	for i := range 200 {
		q := retriever.Query{Text: words[i%len(words)] + " " + words[(i*7+3)%len(words)], Limit: 5, Context: []string{"access/roles.md"}}
		a, err := index.SearchOp.Call(t.Context(), w.Folder, q, nil)
		if err != nil || a.Index.State != "ready" {
			t.Fatalf("Search(%q) = %+v, %v", q.Text, a, err)
		}
		for i := range a.Results { // the clock has gone on, by which counts decay
			a.Results[i].Score = float64(int(a.Results[i].Score*1e6)) / 1e6
		}
		text, err := json.Marshal(a.Results)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, q.Text+": "+string(text))
	}
	return answers
}

// TestRestoredWorkspaceAnswersTheSame makes a backup while the folder is in use and
// restores it into another copy of the documents. 200 queries, the tools, the usage, the
// question tasks and the files below .cairn are the same.
func TestRestoredWorkspaceAnswersTheSame(t *testing.T) {
	sel := handbookFolder(t)
	write(t, filepath.Join(sel.Root, ".cairn/cards/first.md"), "---\ntitle: First\nstatus: todo\n---\n\nText.\n")
	w := open(t, sel, Owning, hashed())
	fill(t, w, index.IndexRequest{})
	box := toolsOf(t, w)
	batch, err := catalog.Read(t.Context(), strings.NewReader(`{"server":"fs","name":"read","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := toolbox.ImportOp.Call(t.Context(), box, toolbox.ImportRequest{Source: "list", Tools: batch.Tools}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := toolbox.ObserveOp.Call(t.Context(), box, usage.Change{
		Observations: []usage.Observation{
			{From: graphrank.DocumentID("access/roles.md"), To: graphrank.DocumentID("operations/incidents.md"), Type: graphrank.Dependency},
			{From: "fs:read", To: graphrank.DocumentID("access/roles.md"), Type: graphrank.Sequence},
		},
		Intents: []usage.Intent{{Text: "leave", Tools: []string{"fs:read", graphrank.DocumentID("access/roles.md")}}},
	}, nil); err != nil {
		t.Fatal(err)
	}
	stages, err := w.Stages(&StageOptions{Workers: -1})
	if err != nil {
		t.Fatal(err)
	}
	task, err := stages.Create(t.Context(), stage.Request{Query: "why do tokens rotate?", UserID: "u"})
	if err != nil {
		t.Fatal(err)
	}
	want := answersOf200(t, w)
	exported := func(w *Workspace) string {
		t.Helper()
		box := toolsOf(t, w)
		var all strings.Builder
		if _, err := toolbox.ExportOp.Call(t.Context(), box, struct{}{}, func(x toolbox.Exported) { text, _ := json.Marshal(x); fmt.Fprintln(&all, string(text)) }); err != nil {
			t.Fatal(err)
		}
		return all.String()
	}
	wantExport := exported(w)
	var backup bytes.Buffer
	report, err := w.Backup(t.Context(), &backup)
	if err != nil || report.Records == 0 || report.Files != 1 {
		t.Fatalf("Backup: %+v, %v", report, err)
	}

	other := handbookFolder(t)
	r := open(t, other, Owning, hashed())
	lines := bytes.SplitAfter(backup.Bytes(), []byte("\n"))
	for name, bad := range map[string][]byte{
		"flipped": nil,
		"cut":     bytes.Join(lines[:len(lines)-2], nil),
		"missing": bytes.Join(append(slices.Clone(lines[:2]), lines[3:]...), nil),
	} {
		if name == "flipped" {
			bad = bytes.Clone(backup.Bytes())
			bad[len(bad)/2] ^= 1
		}
		if _, err := r.Restore(t.Context(), bytes.NewReader(bad), RestoreOptions{}); err == nil || !strings.Contains(err.Error(), "damaged or missing") {
			t.Errorf("%s: Restore = %v, want an error", name, err)
		}
	}
	if report, err := r.Restore(t.Context(), &backup, RestoreOptions{}); err != nil || report.Files != 1 || report.Damaged != 0 {
		t.Fatalf("Restore: %+v, %v", report, err)
	}
	fill(t, r, index.IndexRequest{})
	for i, got := range answersOf200(t, r) {
		if got != want[i] {
			t.Errorf("answer %d:\n%s\nwant\n%s", i, got, want[i])
		}
	}
	if got := exported(r); got != wantExport {
		t.Errorf("tools and usage:\n%s\nwant\n%s", got, wantExport)
	}
	restored, err := r.Stages(&StageOptions{Workers: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer restored.Close()
	list, err := restored.List(t.Context(), stage.Query{UserID: "u"})
	if err != nil || len(list) != 1 || list[0].ID != task.ID || list[0].Query != task.Query {
		t.Errorf("question tasks: %+v, %v", list, err)
	}
	stages.Close()
	// A file that people have changed stays.
	write(t, filepath.Join(other.Root, ".cairn/cards/first.md"), "changed")
	again, err := w.Backup(t.Context(), &backup)
	if err != nil || again.Files != 1 {
		t.Fatal(err)
	}
	if report, err := r.Restore(t.Context(), &backup, RestoreOptions{}); err != nil || !slices.Equal(report.Kept, []string{".cairn/cards/first.md"}) {
		t.Errorf("Restore over a changed file: %+v, %v", report, err)
	}
}

// TestBackupNamesWhatItLeavesOut backs up a folder with a link and a large file.
func TestBackupNamesWhatItLeavesOut(t *testing.T) {
	sel := folder(t)
	large, link := filepath.Join(sel.Root, ".cairn/large.pdf"), filepath.Join(sel.Root, ".cairn/link.md")
	write(t, large, "")
	if err := os.Truncate(large, maxBackupFile+1); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../auth.md", link); err != nil {
		t.Skip(err)
	}
	report, err := open(t, sel, Owning, hashed()).Backup(t.Context(), io.Discard)
	want := []string{".cairn/large.pdf is larger than 16 MiB", ".cairn/link.md is not a regular file"}
	if err != nil || !slices.Equal(report.LeftOut, want) {
		t.Errorf("Backup: %+v, %v, want %q left out", report, err, want)
	}
}

// TestRestoreStaysInTheFolder refuses a backup with a file elsewhere.
func TestRestoreStaysInTheFolder(t *testing.T) {
	sel := folder(t)
	w := open(t, sel, Owning, hashed())
	for _, name := range []string{"../x", "auth.md", ".cairn/../../x", "/etc/x", ".cairn"} {
		var backup bytes.Buffer
		b := kv.NewLineWriter(&backup)
		b.Write(backupRecord{Format: 1})
		b.Write(backupRecord{File: name, Content: []byte("x")})
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Restore(t.Context(), &backup, RestoreOptions{Overwrite: true}); err == nil {
			t.Errorf("a file %q was restored", name)
		}
	}
	if text, err := os.ReadFile(filepath.Join(sel.Root, "auth.md")); err != nil || !strings.HasPrefix(string(text), "# Auth") {
		t.Errorf("auth.md: %q, %v", text, err)
	}
}
