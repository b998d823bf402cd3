package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/models"
	"cairn/retriever"
)

// spoil writes over the files in dir that match pattern, from their middle on.
func spoil(t *testing.T, dir, pattern string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	for _, name := range names {
		if err := os.WriteFile(name, []byte(strings.Repeat("damaged ", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// noticing are options whose model counts the texts it embeds, and that collect
// what is noticed.
func noticing(lines *[]string, embedded *int) Options {
	o := hashed()
	o.Model = func() (models.Embedder, error) {
		return &testutil.HashEmbedder{Before: func(texts []string) error { *embedded += len(texts); return nil }}, nil
	}
	o.Notice = func(line string) { *lines = append(*lines, line) }
	return o
}

// TestEmptyDocumentsFile: an index whose documents are an empty file counts as
// missing for a search, and an index run rebuilds it, whatever other files there
// are.
func TestEmptyDocumentsFile(t *testing.T) {
	for _, access := range []Access{Reading, Owning} {
		sel := indexedFolder(t)
		at := filepath.Join(testutil.Place(t, sel.Root).Index, documentsFile)
		if err := os.Truncate(at, 0); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(sel.Root, "docs/restore.md")); err != nil {
			t.Fatal(err)
		}
		var lines []string
		var embedded int
		w := open(t, sel, access, noticing(&lines, &embedded))
		a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login flow"}, nil)
		if err != nil || a.Index.State != "missing" || a.Reason != "not_indexed" {
			t.Errorf("access %d: Search = %+v, %v, want not_indexed", access, a, err)
		}
		if report := fill(t, w, index.IndexRequest{}); report.Files != 2 || report.Pending != 0 || embedded != 0 {
			t.Errorf("access %d: Index = %+v, %d texts embedded, want 2 files, all vectors from the cache", access, report, embedded)
		}
		if !answers(t, w) {
			t.Errorf("access %d: no answer after indexing", access)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], at+" is empty") {
			t.Errorf("access %d: noticed %q, want one line with the file", access, lines)
		}
	}
}

// damages are ways in which an index derived from the documents cannot be opened.
// Without the file of the vectors the five texts are embedded again.
var damages = []struct {
	name, degraded string
	embedded       int
	make           func(t *testing.T, dir string)
}{
	{"keywords: segments", index.KeywordsLacking, 0, func(t *testing.T, dir string) { spoil(t, dir, "keywords/*.zap") }},
	{"keywords: list of segments", index.KeywordsLacking, 0, func(t *testing.T, dir string) { spoil(t, dir, "keywords/root.bolt") }},
	{"keywords: gone", index.KeywordsLacking, 0, func(t *testing.T, dir string) { remove(t, filepath.Join(dir, keywordFolder)) }},
	{"vectors", "vectors", 5, func(t *testing.T, dir string) { spoil(t, dir, "vectors/*") }},
	{"vectors: gone", "vectors", 5, func(t *testing.T, dir string) { remove(t, filepath.Join(dir, vectorFolder)) }},
}

// TestDamagedIndexDegrades damages a derived index: a reader answers from the other
// one and says what is missing; an owner rebuilds it.
func TestDamagedIndexDegrades(t *testing.T) {
	for _, c := range damages {
		sel := indexedFolder(t)
		dir := testutil.Place(t, sel.Root).Index
		c.make(t, dir)
		w := open(t, sel, Reading, hashed())
		for _, mode := range []retriever.Mode{retriever.Hybrid, retriever.Keyword, retriever.Semantic} {
			a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login flow asks for a token", Mode: mode}, nil)
			if err != nil || len(a.Results) == 0 || a.Results[0].Path != "auth.md" {
				t.Errorf("%s, %s: Search = %+v, %v, want auth.md", c.name, mode, a, err)
				continue
			}
			if whole := c.degraded == "vectors" && mode == retriever.Keyword; slices.Contains(a.Degraded, c.degraded) == whole {
				t.Errorf("%s, %s: degraded %q", c.name, mode, a.Degraded)
			}
		}
		if _, err := index.ReadOp.Call(t.Context(), w.Folder, retriever.ReadRequest{Path: "auth.md#login"}, nil); err != nil {
			t.Errorf("%s: Read = %v", c.name, err)
		}
		w.Close()

		var lines []string
		var embedded int
		o := noticing(&lines, &embedded) // neither Background nor Watch
		w = open(t, sel, Owning, o)
		eventually(t, c.name+" rebuilt", func() bool {
			a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login flow"}, nil)
			if err != nil || len(a.Results) == 0 {
				t.Fatalf("%s: Search during the rebuild = %+v, %v", c.name, a, err)
			}
			return len(a.Degraded) == 0 && a.Index.State == "ready"
		})
		a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "token", Mode: retriever.Keyword}, nil)
		if err != nil || len(a.Results) != 1 || a.Mode != retriever.Keyword || a.Hint != "" {
			t.Errorf("%s: keyword search afterwards = %+v, %v", c.name, a, err)
		}
		if report := fill(t, w, index.IndexRequest{}); report.Unchanged != 3 || report.Pending != 0 || embedded != c.embedded {
			t.Errorf("%s: Index = %+v, %d texts embedded, want nothing to do and %d", c.name, report, embedded, c.embedded)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "being rebuilt") {
			t.Errorf("%s: noticed %q, want one line", c.name, lines)
		}
		if err := w.Close(); err != nil {
			t.Errorf("%s: Close = %v", c.name, err)
		}
	}
}

// TestDamagedDocuments damages the documents: a search says that there is no index and
// why, and an index run rebuilds it, with the vectors from the cache.
func TestDamagedDocuments(t *testing.T) {
	for _, access := range []Access{Reading, Owning} {
		sel := indexedFolder(t)
		spoil(t, testutil.Place(t, sel.Root).Index, documentsFile)
		var lines []string
		var embedded int
		w := open(t, sel, access, noticing(&lines, &embedded))
		a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: "login"}, nil)
		if access == Reading && (err != nil || a.Index.State != "missing" || !slices.Equal(a.Degraded, []string{index.DocumentsLacking}) || !strings.Contains(a.Hint, documentsFile)) {
			t.Errorf("access %d: Search = %+v, %v, want no index and why", access, a, err)
		}
		s, err := index.StatusOp.Call(t.Context(), w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
		if err != nil || access == Reading && (!slices.Equal(s.Degraded, []string{index.DocumentsLacking}) || !strings.Contains(s.Problem, "cairn index")) {
			t.Errorf("access %d: Status = %+v, %v, want what to do", access, s, err)
		}
		if report := fill(t, w, index.IndexRequest{}); report.Files != 3 || report.Pending != 0 || embedded != 0 {
			t.Errorf("access %d: Index = %+v, %d texts embedded, want 3 files, all vectors from the cache", access, report, embedded)
		}
		if !answers(t, w) || len(lines) != 1 {
			t.Errorf("access %d: no answer after indexing, or noticed %q", access, lines)
		}
		w.Close()
	}
}

// TestDamageIsFoundWhileSearching flips bits of the parts of an index. No search is wrong:
// it answers as before, or says what it lacks. An owner rebuilds what is damaged.
func TestDamageIsFoundWhileSearching(t *testing.T) {
	queries := []string{"login flow asks for a token", "restore a backup", "token"}
	ask := func(w *Workspace, mode retriever.Mode) (answers []string, degraded bool) {
		for _, text := range queries {
			a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: text, Mode: mode}, nil)
			if err != nil && strings.Contains(err.Error(), "damaged") { // while the indexer runs
				return nil, true
			}
			if err != nil {
				t.Fatalf("Search = %v", err)
			}
			degraded = degraded || len(a.Degraded) > 0 || a.Index.State != "ready"
			answers = append(answers, fmt.Sprintf("%+v", a.Results))
		}
		return answers, degraded
	}
	sel := indexedFolder(t)
	w := open(t, sel, Reading, hashed())
	want, _ := ask(w, retriever.Hybrid)
	w.Close()
	dir := testutil.Place(t, sel.Root).Index
	for _, pattern := range []string{documentsFile, "keywords/*.zap", "vectors/vectors.cairn"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		content, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		used := len(bytes.TrimRight(content, "\x00"))
		for at := 11; at < used; at += used / 9 {
			flipped := bytes.Clone(content)
			flipped[at] ^= 0x20
			damagedCopy := func() config.Selection { // for each process: scorch keeps a folder locked that it could not open
				copied := sel
				copied.Root = t.TempDir()
				to := testutil.Place(t, copied.Root).Index
				for from, to := range map[string]string{sel.Root: copied.Root, dir: to} {
					if err := os.CopyFS(to, os.DirFS(from)); err != nil {
						t.Fatal(err)
					}
				}
				if err := errors.Join(os.Remove(filepath.Join(to, "folder")), os.WriteFile(filepath.Join(to, strings.TrimPrefix(names[0], dir)), flipped, 0o600)); err != nil {
					t.Fatal(err)
				}
				return copied
			}
			w := open(t, damagedCopy(), Reading, hashed())
			if got, degraded := ask(w, retriever.Hybrid); !degraded && !slices.Equal(got, want) {
				t.Errorf("%s, byte %d: a reader answers %q, want %q", pattern, at, got, want)
			}
			w.Close()
			o := hashed()
			o.Background = true
			w = open(t, damagedCopy(), Owning, o)
			eventually(t, fmt.Sprintf("%s, byte %d rebuilt", pattern, at), func() bool {
				got, degraded := ask(w, retriever.Hybrid)
				if !degraded && !slices.Equal(got, want) {
					t.Errorf("%s, byte %d: the owner answers %q, want %q", pattern, at, got, want)
				}
				return !degraded
			})
			w.Close()
		}
	}
}

// TestDamageWithoutIndexing damages the documents while the owner indexes nothing by itself,
// as `cairn mcp --no-index`. No answer is wrong: it is as before, or names the documents.
// A call of Index rebuilds them.
func TestDamageWithoutIndexing(t *testing.T) {
	sel := indexedFolder(t)
	dir := testutil.Place(t, sel.Root).Index
	queries := []string{"login flow asks for a token", "restore a backup", "token"}
	ask := func(w *Workspace, text string) (answer string, a *retriever.Answer) {
		a, err := index.SearchOp.Call(t.Context(), w.Folder, retriever.Query{Text: text}, nil)
		if err != nil {
			t.Fatalf("Search = %v", err)
		}
		return fmt.Sprintf("%+v", a.Results), a
	}
	w := open(t, sel, Owning, hashed())
	want := map[string]string{}
	for _, text := range queries {
		want[text], _ = ask(w, text)
	}
	w.Close()
	content, err := os.ReadFile(filepath.Join(dir, documentsFile))
	if err != nil {
		t.Fatal(err)
	}
	damages := map[string]func(path string) error{
		"removed":   os.Remove,
		"emptied":   func(path string) error { return os.Truncate(path, 0) },
		"truncated": func(path string) error { return os.Truncate(path, int64(len(content)/2)) },
		"garbage":   func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("damaged ", 1000)), 0o600) },
	}
	used := len(bytes.TrimRight(content, "\x00"))
	for at := 11; at < used; at += used / 9 {
		damages[fmt.Sprint("byte ", at)] = func(path string) error {
			flipped := bytes.Clone(content)
			flipped[at] ^= 0x20
			return os.WriteFile(path, flipped, 0o600)
		}
	}
	lost := 0
	for name, damage := range damages {
		copied := sel
		copied.Root = t.TempDir()
		to := testutil.Place(t, copied.Root).Index
		for from, to := range map[string]string{sel.Root: copied.Root, dir: to} {
			if err := os.CopyFS(to, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.Remove(filepath.Join(to, "folder")), damage(filepath.Join(to, documentsFile))); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second process finds the same damage
			w := open(t, copied, Owning, hashed())
			for range 2 {
				for text, want := range want {
					got, a := ask(w, text)
					if len(a.Degraded) == 0 && got != want {
						t.Errorf("%s: %q finds %s in state %q, want %s or what is missing", name, text, got, a.Index.State, want)
					}
					if slices.Contains(a.Degraded, index.DocumentsLacking) {
						lost++
					}
				}
			}
			w.Close()
		}
		w := open(t, copied, Owning, hashed())
		for _, text := range queries {
			ask(w, text) // finds damage that no run reads
		}
		if report := fill(t, w, index.IndexRequest{}); report.Files != 3 {
			t.Errorf("%s: Index = %+v, want 3 files", name, report)
		}
		for text, want := range want {
			if got, a := ask(w, text); got != want || len(a.Degraded) > 0 {
				t.Errorf("%s, rebuilt: %q finds %s, degraded %q, want %s", name, text, got, a.Degraded, want)
			}
		}
		w.Close()
	}
	if lost == 0 {
		t.Error("no answer lacks the documents")
	}
}
