package index

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/scan"
)

// TestLines: in a watched folder, a scan reads only the files that can match, finds an edit
// that was made just before the request, and reads all files if the documents are damaged.
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
			if complete := x.complete.Load(); !ok || !complete || b.All {
				return fmt.Sprintf("not watched and indexed: %+v, %v, %v", b, ok, complete)
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
	x.setAside(Damage{DocumentsFile: errors.New("damaged")})
	if c := candidates("needle07"); !slices.Contains(c.Paths, "f07.md") || len(c.Paths) != 20 {
		t.Errorf("without the documents: %+v, want all files", c)
	}
	if _, err := x.Index(t.Context(), IndexRequest{Join: true}, nil); err != nil {
		t.Fatal(err)
	}
	ready() // indexed again
}
