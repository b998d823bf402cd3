package benchmarks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/toolbox/toolsearch"
)

// TestParts: the share of invented intents that are split into the parts that their author marked.
func TestParts(t *testing.T) {
	for name, least := range map[string]float64{"invented-dev.txt.gz": .7} {
		list, err := readMarked(filepath.Join("testdata", name))
		if err != nil || len(list) < 500 {
			t.Fatalf("%d intents, %v", len(list), err)
		}
		right := 0
		for i := range list {
			var found [][2]int
			for _, p := range toolsearch.Parts(list[i].text) {
				if !p.Statement {
					found = append(found, [2]int{p.Start, p.End})
				}
			}
			if list[i].splitRight(found) {
				right++
			}
		}
		share := float64(right) / float64(len(list))
		t.Logf("%s: %d intents, %.3f split right", name, len(list), share)
		if share < least {
			t.Errorf("%s: %.3f of the intents are split right, want %.3f", name, share, least)
		}
	}
}

// TestFitParts: weights fitted to the requests of the repository split others, and are written as
// package toolsearch reads them.
func TestFitParts(t *testing.T) {
	r, err := FitParts([]string{"../models/minilm/plans.tsv.gz"})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r)
	if r.Right < .7 || r.Held < 500 {
		t.Errorf("%v", r)
	}
	name := filepath.Join(t.TempDir(), "tags.weights")
	if err := r.Write(name); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(name); err != nil || len(b) < 7*r.Features {
		t.Errorf("%d bytes for %d features, %v", len(b), r.Features, err)
	}
	few := filepath.Join(t.TempDir(), "few.txt")
	if err := os.WriteFile(few, []byte("@ | [[ring the bell]]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "plain.gz")
	if err := os.WriteFile(plain, []byte("@ | [[ring the bell]]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{few: "the files have 1", few + ".gz": "few.txt.gz", plain: "plain.gz: gzip"} {
		if _, err := FitParts([]string{file}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

// TestMarked: requests are read with their parts, and written as lists and as verbs with one object.
func TestMarked(t *testing.T) {
	m := marked("so [[star the repo]], and [[close 5]].")
	if want := (markedRequest{"so star the repo, and close 5.", [][2]int{{3, 16}, {22, 29}}}); m.text != want.text || !slices.Equal(m.parts, want.parts) {
		t.Errorf("%+v, want %+v", m, want)
	}
	if l := m.list("%d. "); l.text != "1. star the repo\n2. close 5" || l.text[l.parts[1][0]:l.parts[1][1]] != "close 5" {
		t.Errorf("list %+v", l)
	}
	fork := marked("[[fork it]]")
	if v := m.verbs(&fork); v.text != "fork and star the repo" || len(v.parts) != 2 || v.parts[0] != [2]int{0, 4} {
		t.Errorf("verbs %+v", v)
	}
	if !m.splitRight([][2]int{{0, 16}, {22, 30}}) || m.splitRight([][2]int{{0, 30}}) || m.splitRight([][2]int{{3, 16}, {27, 30}}) {
		t.Error("splitRight is wrong")
	}
}
