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
	lines := func(pattern string) *Found {
		t.Helper()
		a, err := x.Lines(t.Context(), scan.Request{Pattern: pattern, Rules: x.options.Config.Masks().Rules()})
		if err != nil || a.Searched != 20 {
			t.Fatalf("%+v, %v, want an answer for 20 files", a, err)
		}
		return a
	}
	in := func(a *Found, name string) bool {
		return slices.ContainsFunc(a.Found, func(l scan.Line) bool { return l.Path == name })
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
	if a := lines("File 7"); len(a.Found) != 1 || !in(a, "f07.md") {
		t.Errorf("%+v, want f07.md", a)
	}
	for i := range 20 {
		word, name := fmt.Sprintf("needle%02d", i), fmt.Sprintf("f%02d.md", i)
		if a := lines(word); a.Total > 0 && i%2 == 0 {
			t.Errorf("%s: %+v before the edit", word, a)
		}
		write(name, word+"\n")
		if a := lines(word); a.Total != 1 || !in(a, name) {
			t.Errorf("%s: %+v, want %s after the edit", word, a, name)
		}
	}
	x.setAside(Damage{DocumentsFile: errors.New("damaged")})
	if a := lines("needle07"); a.Total != 1 || !in(a, "f07.md") {
		t.Errorf("without the documents: %+v, want f07.md", a)
	}
	if a, err := x.Lines(t.Context(), scan.Request{Pattern: "needle07", Rules: "others"}); err == nil {
		t.Errorf("a caller that masks other secrets: %+v", a)
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
	path := filepath.Join(root, "zz-saved.md")
	defer os.Remove(path)
	var took []time.Duration
	for i := range 200 {
		r := scan.Request{Pattern: fmt.Sprintf("saved%dnow", i*i), Rules: x.options.Config.Masks().Rules()}
		saved := time.Now()
		if err := os.WriteFile(path, []byte("# Saved\n\n"+r.Pattern+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		a, err := x.Lines(t.Context(), r)
		if err != nil || a.Total != 1 {
			t.Fatalf("save %d: %+v, want 1 line; %v", i, a, err)
		}
		took = append(took, time.Since(saved))
		time.Sleep(time.Duration(i%8) * 50 * time.Millisecond) // the next save is before or after the file is indexed
	}
	slices.Sort(took)
	t.Logf("from the save to the answer: p50 %v, p95 %v, most %v", took[len(took)/2], took[len(took)*95/100], took[len(took)-1])
}
