package scan

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cairn/internal/store/ngram"
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

// TestLikeAFullScan: after random edits, whether they were recorded or are only known to have
// changed, an answer equals that of a scan of all files, also after the records were damaged.
func TestLikeAFullScan(t *testing.T) {
	dir, tree := random(t)
	e := &edits{t: t, rng: rand.New(rand.NewPCG(7, 8)), dir: dir}
	grams := filepath.Join(t.TempDir(), "ngrams")
	x := ngram.Open(grams, nil)
	excluded, damaged := 0, 0
	for range 60 {
		if err := Update(t.Context(), tree, options, nil, x, nil); err != nil {
			t.Fatal(err)
		}
		x.SetComplete(true)
		e.changed = []string{}
		for range e.rng.IntN(8) {
			e.change()
		}
		if e.rng.IntN(2) == 0 && len(e.changed) > 0 {
			n := e.rng.IntN(len(e.changed))
			if err := Update(t.Context(), tree, options, nil, x, e.changed[:n]); err != nil {
				t.Fatal(err)
			}
			e.changed = e.changed[n:]
		}
		if e.rng.IntN(8) == 0 {
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			if e.rng.IntN(2) == 0 {
				damaged++
				damage(t, e.rng, grams)
			}
			x = ngram.Open(grams, nil)
		}
		for range 8 {
			r := e.pattern()
			want := find(t, tree, r)
			walked, err := Select(t.Context(), tree, options, x, r)
			if err != nil {
				t.Fatal(err)
			}
			same(t, tree, "walking", r, walked, want)
			watched, ok, err := SelectWatched(t.Context(), tree, options, x, e.changed, r)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				same(t, tree, "watching", r, watched, want)
				excluded += watched.Excluded
			}
		}
	}
	if excluded < 1000 || damaged == 0 {
		t.Errorf("%d files excluded, %d damaged: the test shows little", excluded, damaged)
	}
}

func damage(t *testing.T, rng *rand.Rand, name string) {
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	content[rng.IntN(len(content))] ^= 1
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
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

// TestUpdateNoticesAnEdit: an edit that keeps the size and the time of a file is found where
// the system records its own time of a change.
func TestUpdateNoticesAnEdit(t *testing.T) {
	dir, tree := open(t, map[string]string{"a.md": "first\n"})
	x := ngram.Open(filepath.Join(t.TempDir(), "ngrams"), nil)
	update := func() {
		t.Helper()
		if err := Update(t.Context(), tree, options, nil, x, nil); err != nil {
			t.Fatal(err)
		}
	}
	update()
	for i, text := range []string{"other\n", "again\n", "third\n"} { // faster than the clock of the file system
		if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := Select(t.Context(), tree, options, x, Request{Pattern: strings.TrimSpace(text)})
		if err != nil || len(c.Paths) != 1 {
			t.Errorf("edit %d: %+v, %v, want a.md", i, c, err)
		}
		update()
	}
}
