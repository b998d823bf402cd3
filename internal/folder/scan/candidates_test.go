package scan

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
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
	return strings.TrimSuffix(b.String(), "\n") + strings.Repeat("\x00", e.rng.IntN(20)/19)
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
func openIndexer(t *testing.T, tree *walk.Tree) (*indexer.Indexer, *docs.Store) {
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
	return indexer.New(stores, &testutil.HashEmbedder{}, &indexer.Options{Walk: options}), documents
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
	x, d := openIndexer(t, tree)
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
			same(t, tree, "walking", r, walked, want)
			watched, err := SelectWatched(t.Context(), tree, options, known, e.changed, r)
			if err != nil {
				t.Fatal(err)
			}
			same(t, tree, "watching", r, watched, want)
			excluded += watched.Excluded
		}
	}
	if excluded < 1000 {
		t.Errorf("%d files excluded: the test shows little", excluded)
	}
}

func same(t *testing.T, tree *walk.Tree, how string, r Request, c *Candidates, want *Answer) {
	t.Helper()
	got, err := Find(t.Context(), tree, options, nil, c, r)
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
	x, d := openIndexer(t, tree)
	var known *Known
	update := func() {
		t.Helper()
		if _, err := x.Scan(t.Context(), nil); err != nil {
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
		if err != nil || len(c.Paths) != 1 {
			t.Errorf("edit %d: %+v, %v, want a.md", i, c, err)
		}
		update()
	}
}

// TestSecretOfALaterVersion: Find masks a file that has changed since it had no secrets, and
// every file by rules other than those of the index.
func TestSecretOfALaterVersion(t *testing.T) {
	const key = "AKIA0123456789ABCDEF"
	dir, tree := open(t, map[string]string{"a.md": "the key is a secret\n", "b.md": "the key is custom-1\n"})
	x, d := openIndexer(t, tree)
	if _, err := x.Scan(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	known := record(t, d, nil)
	for i := range known.files { // as if they were read long after their last change
		f := &known.files[i]
		info, err := os.Stat(filepath.Join(dir, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		f.Size, f.ModTime, f.ChangeTime = info.Size(), info.ModTime().UnixNano(), walk.ChangeTime(info)
	}
	masks, err := secret.New()
	if err != nil {
		t.Fatal(err)
	}
	stricter, err := secret.New("custom-[0-9]+")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte("the key is "+key+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*secret.Masks{masks, stricter} {
		r := Request{Pattern: "the key is"}
		c, err := SelectWatched(t.Context(), tree, options, known, nil, r)
		if err != nil {
			t.Fatal(err)
		}
		c.Rules = masks.Rules()
		if unmasked := c.at(1, m.Rules()).plain != (State{}); unmasked != (m == masks) {
			t.Errorf("b.md is not masked: %v", unmasked)
		}
		a, err := Find(t.Context(), tree, options, m, c, r)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"a.md:1:the key is AKIA***", "b.md:1:the key is custom-1"}
		if m == stricter {
			want[1] = "b.md:1:the key is ***"
		}
		if diff := cmp.Diff(want, a.Lines); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
