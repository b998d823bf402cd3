package index

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/scan"
	"cairn/internal/store/ngram"
)

// TestLines: in a watched folder, a scan reads only the files that can match, finds an edit
// that was made just before the request, and reads all files if nothing is recorded.
func TestLines(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		write(fmt.Sprintf("f%02d.md", i), fmt.Sprintf("# File %d\n\nalpha beta\n", i))
	}
	x := open(t, func(o *Options) { o.Selection.Root, o.Watch = root, true })
	candidates := func(pattern string) *scan.Candidates {
		t.Helper()
		c, err := x.Candidates(t.Context(), scan.Request{Pattern: pattern})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ready := func() {
		t.Helper()
		testutil.Await(t, func() string {
			b, ok := x.unhandled()
			if complete := x.lines.grams.Files(&ngram.Query{}, func(*ngram.File, bool) {}); !ok || !complete || b.All {
				return fmt.Sprintf("not watched and recorded: %+v, %v, %v", b, ok, complete)
			}
			return ""
		})
	}
	ready()
	if c := candidates("File 7"); !slices.Equal(c.Paths, []string{"f07.md"}) || c.Excluded != 19 {
		t.Errorf("%+v, want f07.md of 20", c)
	}
	for i := range 20 {
		word, name := fmt.Sprintf("needle%02d", i), fmt.Sprintf("f%02d.md", i)
		if c := candidates(word); slices.Contains(c.Paths, name) && i%2 == 0 {
			t.Errorf("%s: %+v before the edit", word, c)
		}
		write(name, word+"\n")
		if c := candidates(word); !slices.Contains(c.Paths, name) || len(c.Paths)+c.Excluded != 20 {
			t.Errorf("%s: %+v, want %s after the edit", word, c, name)
		}
	}
	x.lines.grams.Clear() // as after damage
	if c := candidates("needle07"); !slices.Contains(c.Paths, "f07.md") {
		t.Errorf("after the records were lost: %+v, want f07.md", c)
	}
	ready() // recorded again
}

// TestVerifyLines: damage of the n-grams is found and repaired.
func TestVerifyLines(t *testing.T) {
	x := open(t, nil)
	if _, err := x.Index(t.Context(), IndexRequest{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(x.options.Dir, ngramFile)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(content[:4096]) // the first header
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	x = New(x.options)
	defer x.Close()
	for _, repaired := range []string{"", "rebuilt"} {
		v, err := x.Verify(t.Context(), VerifyRequest{Repair: repaired != ""})
		if err != nil {
			t.Fatal(err)
		}
		if f := v.Files[len(v.Files)-1]; f.Name != ngramFile || len(f.Problems) != 1 || f.Repaired != repaired {
			t.Errorf("%+v, want one problem, repaired %q", f, repaired)
		}
	}
	if c, err := x.Candidates(t.Context(), scan.Request{Pattern: "absent"}); err != nil || len(c.Paths) != 0 || c.Excluded != 1 {
		t.Errorf("%+v, %v, want one file excluded", c, err)
	}
}
