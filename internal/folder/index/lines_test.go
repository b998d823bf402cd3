package index

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cairn/internal/base/testutil"
	"cairn/internal/folder/scan"
	"cairn/internal/text/walk"
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

// TestFreshness measures how soon the lines of a saved file are found in the folder
// $CAIRN_FRESH, to which it adds a file for the time of the test. The first search after each
// save finds them, also while the file is being indexed.
func TestFreshness(t *testing.T) {
	root := os.Getenv("CAIRN_FRESH")
	if root == "" {
		t.Skip("CAIRN_FRESH is not set: a folder to index and search")
	}
	x := open(t, func(o *Options) { o.Selection.Root, o.Watch = root, true })
	begun := time.Now()
	for b, ok := x.unhandled(); !ok || b.All || !x.complete.Load(); b, ok = x.unhandled() {
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("indexed in %v", time.Since(begun))
	tree, err := walk.Open(walk.Root{Dir: root})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	path := filepath.Join(root, "zz-saved.md")
	defer os.Remove(path)
	var took []time.Duration
	for i := range 200 {
		r := scan.Request{Pattern: fmt.Sprintf("saved%dnow", i*i)}
		saved := time.Now()
		if err := os.WriteFile(path, []byte("# Saved\n\n"+r.Pattern+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := x.Candidates(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		a, err := scan.Find(t.Context(), tree, x.options.Config.Walk(), x.options.Config.Masks(), c, r)
		if err != nil || a.Total != 1 {
			t.Fatalf("save %d: %d lines, want 1; %v", i, a.Total, err)
		}
		took = append(took, time.Since(saved))
		time.Sleep(time.Duration(i%8) * 50 * time.Millisecond) // the next save is before or after the file is indexed
	}
	slices.Sort(took)
	t.Logf("from the save to the answer: p50 %v, p95 %v, most %v", took[len(took)/2], took[len(took)*95/100], took[len(took)-1])
}
