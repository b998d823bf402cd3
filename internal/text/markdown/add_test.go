package markdown_test

import (
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
	e := &testutil.HashEmbedder{}
	w, err := workspace.Open(t.Context(), config.Selection{Root: root, Rule: config.RuleFlag}, config.Default(), workspace.Owning, workspace.Options{
		Settings: index.Settings{Model: func() (models.Embedder, error) { return e, nil }, Description: e.Description()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
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
