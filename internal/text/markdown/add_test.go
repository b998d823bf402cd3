package markdown_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/text/markdown"
	"cairn/models"
	"cairn/retriever"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// TestAddAFormat: a row in the table of formats is enough to index, count, find and read
// the files of a type.
func TestAddAFormat(t *testing.T) {
	markdown.AddFormat(t, "Entries", ".entries")
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.md":         "# Deploy\n\nRun the release script.\n",
		"refs.ENTRIES": "@book{knuth,\n  title = {Literate programming}\n}\n@article{page,\n  title = {Hypertextual search}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := openFolder(t, root)
	if _, err := index.IndexOp.Call(t.Context(), w.Folder, index.IndexRequest{}, nil); err != nil {
		t.Fatal(err)
	}
	status, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"Markdown": 1, "Entries": 1}; !maps.Equal(status.Kinds, want) {
		t.Errorf("status counts %v, want %v", status.Kinds, want)
	}
	found, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "hypertextual"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Results) == 0 || found.Results[0].Path != "refs.ENTRIES" || found.Results[0].Anchor != "page" {
		t.Errorf("found %+v, want refs.ENTRIES#page first", found.Results)
	}
	reading, err := index.ReadOp.Call(t.Context(), w.Folder, retriever.ReadRequest{Path: "refs.ENTRIES#knuth"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "@book{knuth,"; !strings.HasPrefix(reading.Content, want) || strings.Contains(reading.Content, "page") {
		t.Errorf("read %q, want the section from %q", reading.Content, want)
	}
}

func openFolder(t *testing.T, root string) *workspace.Workspace {
	t.Helper()
	e := &testutil.HashEmbedder{}
	w, err := workspace.Open(t.Context(), config.Selection{Root: root, Rule: config.RuleFlag}, config.Default(), workspace.Owning, workspace.Options{
		Settings: index.Settings{Model: func() (models.Embedder, error) { return e, nil }, Description: e.Description()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// TestKeptFiles: cairn finds what people keep in a folder of notes, and index, status and
// search agree on what it indexes.
func TestKeptFiles(t *testing.T) {
	root := t.TempDir()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte("The aardvark release.\n")); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	table := "animal,keeper\n"
	for i := range 6000 {
		table += fmt.Sprintf("animal%d,keeper%d\n", i, i)
	}
	files := map[string]string{
		"README": "Feed the bandicoot.\n", "NEWS.gz": packed.String(), "mail.eml": "Subject: The capybara\n\nIt sleeps.\n",
		"animals.csv": table, "notes.md": "# Notes\n", "LICENSE": "\x00\x01",
		"style.css": ".dugong { color: red }\n", "Makefile": "dugong: a\n", "yarn.lock": "dugong\n", "data.json": "[]", "archive.tar.gz": packed.String(),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := openFolder(t, root)
	report, err := index.IndexOp.Call(t.Context(), w.Folder, index.IndexRequest{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	status, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	skipped, err := index.SkippedOp.Call(t.Context(), w.Folder, struct{}{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"extension not indexed": 5, "binary": 1}; report.Files != 5 || status.Files != 5 || report.Skipped != 6 || len(skipped) != 6 || !maps.Equal(status.Skipped, want) {
		t.Errorf("index: %d and %d skipped, status: %d and %v, skipped: %v; want 5 files and %v", report.Files, report.Skipped, status.Files, status.Skipped, skipped, want)
	}
	for query, want := range map[string]string{
		"bandicoot": "README", "aardvark": "NEWS.gz", "capybara": "mail.eml", "animal5000": "animals.csv#rows-5001-to-5020", "dugong": "#",
	} {
		a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: query, Mode: retriever.Keyword}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range a.Results {
			got += r.Path + "#" + r.Anchor + " "
		}
		if !strings.HasPrefix(got+"#", want) {
			t.Errorf("%s: found %q, want %s first", query, got, want)
		}
	}
}
