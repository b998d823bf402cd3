package scan

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cairn/indexer"
	"cairn/internal/base/testutil"
	"cairn/internal/store/docs"
	"cairn/internal/store/keyword"
	"cairn/internal/store/kv"
	"cairn/internal/text/secret"
	"cairn/internal/text/walk"
)

// edits makes random changes of a folder of random text.
type edits struct {
	t       *testing.T
	rng     *rand.Rand
	dir     string
	changed []string
}

func (e *edits) text() string {
	var b strings.Builder
	for range e.rng.IntN(40) {
		for range e.rng.IntN(6) {
			b.WriteString(words[e.rng.IntN(len(words))] + strings.Repeat(" ", e.rng.IntN(2)))
		}
		b.WriteString([]string{"\n", "\r\n"}[e.rng.IntN(2)])
	}
	text := strings.TrimSuffix(b.String(), "\n")
	switch e.rng.IntN(20) {
	case 0:
		return text + "\x00"
	case 1:
		return strings.ReplaceAll(text, "é", "\xe9")
	case 2:
		return text + strings.Repeat("\n", maxSize)
	}
	return text
}

// change writes, removes, renames or ignores a file or a folder.
func (e *edits) change() {
	folder := []string{"", "docs/", "sub/deep/"}[e.rng.IntN(3)]
	path := fmt.Sprintf("%sf%02d.md", folder, e.rng.IntN(30))
	at := filepath.Join(e.dir, filepath.FromSlash(path))
	var err error
	switch e.rng.IntN(12) {
	case 0:
		err = os.Remove(at)
	case 1:
		to := fmt.Sprintf("%sf%02d.md", folder, e.rng.IntN(30))
		err = os.Rename(at, filepath.Join(e.dir, filepath.FromSlash(to)))
		e.changed = append(e.changed, to)
	case 2:
		err = os.RemoveAll(filepath.Join(e.dir, "sub"))
		path = "sub"
	default:
		if err = os.MkdirAll(filepath.Dir(at), 0o755); err == nil {
			err = os.WriteFile(at, []byte(e.text()), 0o644)
		}
	}
	if err != nil && !os.IsNotExist(err) {
		e.t.Fatal(err)
	}
	e.changed = append(e.changed, path)
}

// pattern returns a random string or expression.
func (e *edits) pattern() Request {
	word := func() string { return words[e.rng.IntN(len(words))] }
	r := Request{Pattern: word() + []string{"", " "}[e.rng.IntN(2)] + word(), IgnoreCase: e.rng.IntN(3) == 0}
	if e.rng.IntN(2) == 0 {
		r.Regexp = true
		a, b := regexp.QuoteMeta(word()), regexp.QuoteMeta(word())
		r.Pattern = []string{a + ".*" + b, a + "|" + b + b, "(" + a + "|" + b + ")+x?" + a, "^" + a, b + "$", a + `\s+` + b, a + "{2,}", "[A-Za-z]+" + a + b, "(?i)" + a + b, `\b` + a}[e.rng.IntN(10)]
	}
	return r
}

// openIndexer returns an indexer of the files of a tree, without vectors, and its documents.
func openIndexer(t *testing.T, tree *walk.Tree, o *indexer.Options) (*indexer.Indexer, *docs.Store) {
	t.Helper()
	db, err := kv.Open(filepath.Join(t.TempDir(), "documents.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := docs.Open(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	words, err := keyword.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(words.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	stores := indexer.Stores{Files: tree, Docs: documents, Keyword: words}
	return indexer.New(stores, &testutil.HashEmbedder{}, o), documents
}

// record returns what the documents know, given what they knew before.
func record(t *testing.T, d *docs.Store, before *Known) (k *Known) {
	t.Helper()
	if err := d.View(func(r *docs.Reader) (err error) {
		k, err = Record(r, before, true)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return k
}

// TestLikeAFullScan: after random edits, whether they were indexed or are only known to have
// changed, an answer equals that of a scan of all files.
func TestLikeAFullScan(t *testing.T) {
	dir, tree := random(t)
	e := &edits{t: t, rng: rand.New(rand.NewPCG(7, 8)), dir: dir}
	x, d := openIndexer(t, tree, &indexer.Options{Walk: options})
	var known *Known
	excluded := 0
	for range 40 {
		if _, err := x.RunKeywords(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		e.changed = []string{}
		for range e.rng.IntN(8) {
			e.change()
		}
		if e.rng.IntN(2) == 0 && len(e.changed) > 0 {
			n := 1 + e.rng.IntN(len(e.changed))
			if _, err := x.Refresh(t.Context(), e.changed[:n]); err != nil {
				t.Fatal(err)
			}
			e.changed = e.changed[n:]
		}
		known = record(t, d, known)
		for range 8 {
			r := e.pattern()
			want := find(t, tree, r)
			walked, err := Select(t.Context(), tree, options, known, r)
			if err != nil {
				t.Fatal(err)
			}
			same(t, tree, d, "walking", r, walked, want)
			watched, err := SelectWatched(t.Context(), tree, options, known, e.changed, r)
			if err != nil {
				t.Fatal(err)
			}
			same(t, tree, d, "watching", r, watched, want)
			excluded += watched.Excluded
		}
	}
	if excluded < 1000 {
		t.Errorf("%d files excluded: the test shows little", excluded)
	}
}

func same(t *testing.T, tree *walk.Tree, d *docs.Store, how string, r Request, c *Candidates, want *Answer) {
	t.Helper()
	got, err := listed(Find(t.Context(), tree, options, nil, d, c, r))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Answer{})); diff != "" {
		t.Fatalf("%s, %+v (-full scan +index):\n%s", how, r, diff)
	}
}

// TestEditIsNoticed: an edit that keeps the size and the time of a file is found where
// the system records its own time of a change.
func TestEditIsNoticed(t *testing.T) {
	dir, tree := open(t, map[string]string{"a.md": "first\n"})
	x, d := openIndexer(t, tree, &indexer.Options{Walk: options})
	var known *Known
	update := func() {
		t.Helper()
		if _, err := x.Refresh(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		known = record(t, d, known)
	}
	update()
	for i, text := range []string{"other\n", "again\n", "third\n"} { // faster than the clock of the file system
		if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := Select(t.Context(), tree, options, known, Request{Pattern: strings.TrimSpace(text)})
		if err != nil || len(c.Files) != 1 {
			t.Errorf("edit %d: %+v, %v, want a.md", i, c, err)
		}
		update()
	}
}

// TestTextsOfDocuments: Find reads the texts of files in their known state from the documents,
// and all others from the files, with secrets masked.
func TestTextsOfDocuments(t *testing.T) {
	const key = "AKIA0123456789ABCDEF"
	dir, tree := open(t, map[string]string{
		"changed.md": "the key is a secret\n", "converted.html": "<p>the key is <b>bold</b>\n", "masked.md": "the key is " + key + "\n",
		"removed.md": "the key is known\n", "unknown.md": "\n",
	})
	masks, err := secret.New()
	if err != nil {
		t.Fatal(err)
	}
	o := &walk.Options{Extensions: []string{".md", ".html"}}
	x, d := openIndexer(t, tree, &indexer.Options{Walk: o, Masks: masks})
	if _, err := x.Refresh(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	known := record(t, d, nil)
	for _, name := range []string{"changed.md", "unknown.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("\nthe key is "+key+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "removed.md")); err != nil {
		t.Fatal(err)
	}
	lines := []string{
		"changed.md:2:the key is AKIA***", "converted.html:1:<p>the key is <b>bold</b>", "masked.md:1:the key is AKIA***",
		"removed.md:1:the key is known", "unknown.md:2:the key is AKIA***",
	}
	for _, step := range []struct {
		name  string
		texts *docs.Store
		want  []string
	}{
		{"texts", d, lines},
		{"files", nil, slices.Delete(slices.Clone(lines), 3, 4)},
	} {
		r := Request{Pattern: "the key is"}
		c, err := SelectWatched(t.Context(), tree, o, known, []string{"changed.md", "unknown.md"}, r)
		if err != nil {
			t.Fatal(err)
		}
		a, err := listed(Find(t.Context(), tree, o, masks, step.texts, c, r))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, a.Lines); diff != "" {
			t.Errorf("%s (-want +got)\n%s", step.name, diff)
		}
	}
	c, err := SelectWatched(t.Context(), tree, o, known, nil, Request{Pattern: "the key is"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Refresh(t.Context(), nil); err != nil { // the documents change after the choice
		t.Fatal(err)
	}
	a, err := listed(Find(t.Context(), tree, o, masks, d, c, Request{Pattern: "the key is"}))
	if err != nil || len(a.Lines) != 3 {
		t.Errorf("documents of a later version: %q, %v", a.Lines, err)
	}
}
