package indexer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"cairn/internal/store"
	"cairn/internal/text/query"
)

// animals makes a folder of n files, the last of which is about quokkas.
func animals(t *testing.T, n int) string {
	root := t.TempDir()
	for i := range n {
		write(t, root, fmt.Sprintf("a/%04d.md", i), fmt.Sprintf("# Page %d\n\nCats and dogs, number %d.\n", i, i))
	}
	write(t, root, "z/last.md", "# Marsupials\n\nThe quokka is a small wallaby.\n")
	return root
}

// quokkas are the documents that keyword search finds for the word.
func (f *fixture) quokkas() []string {
	f.t.Helper()
	hits, err := f.stores.Keyword.Search(context.Background(), query.Parse("quokka"), 10, store.Filter{})
	if err != nil {
		f.t.Fatal(err)
	}
	var found []string
	for _, h := range hits {
		path, _, _, _ := store.SplitChunkID(h.Chunk)
		found = append(found, path)
	}
	return found
}

// TestPreferredFilesAreIndexedFirst makes a request before a run reads files, and one
// before it indexes their words.
func TestPreferredFilesAreIndexedFirst(t *testing.T) {
	for _, at := range []string{"files found", "skips recorded"} {
		t.Run(at, func(t *testing.T) {
			const files = 3 * readAtOnce
			root := animals(t, files)
			var f *fixture
			var p *preference
			batches := 0
			f = newFixture(t, root, &Options{Reached: func(point string) {
				switch point {
				case at:
					p = f.preferences.add([]string{"quokka"}, store.Filter{PathPrefix: "z/"})
				case "keywords done":
					if batches++; batches > 1 {
						return
					}
					if got := f.quokkas(); !slices.Equal(got, []string{"z/last.md"}) {
						t.Errorf("after the first batch a search finds %v, want z/last.md", got)
					}
					if n, err := f.stores.Keyword.Count(); err != nil || n > 10 {
						t.Errorf("the first batch has %d chunks, %v, want those of one file", n, err)
					}
				}
			}})
			f.run()
			select {
			case <-p.done:
			default:
				t.Error("the request was not met")
			}
			sameAsClean(t, root, f.stores, f.embedder, nil)
		})
	}
}

func TestPreferEndsWithTheRun(t *testing.T) {
	f := newFixture(t, animals(t, 3), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Prefer(ctx, []string{"quokka"}, store.Filter{}); !errors.Is(err, context.Canceled) || len(f.preferences.waiting) > 0 {
		t.Errorf("Prefer = %v, want that of its context; %d requests wait, want none", err, len(f.preferences.waiting))
	}
	waiting := f.preferences.add([]string{"wombat"}, store.Filter{}) // which no file has
	f.run()
	select {
	case <-waiting.done:
	default:
		t.Error("a request without a match was not met")
	}
	if err := f.Prefer(t.Context(), []string{"quokka"}, store.Filter{}); err != nil {
		t.Errorf("Prefer after a run = %v", err)
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		terms      []string
		name, text string
		want       uint32
	}{
		{[]string{"polici", "absent"}, "a.md", "Network Policies", 1},
		{[]string{"cat"}, "a.md", "concatenate", 0},
		{[]string{"context", "read"}, "a.md", "readContext()", 3},
		{[]string{"auth"}, "docs/auth.md", "", 1},
		{[]string{"auth"}, "auth/a.md", "", 0},
		{[]string{"東京"}, "a.md", "大東京", 1},
	} {
		got, _ := newMatcher(c.terms).match(c.name, []byte(c.text), nil)
		if got.all != c.want {
			t.Errorf("%v in %s %q: %b, want %b", c.terms, c.name, c.text, got.all, c.want)
		}
	}
}

// TestMatchRanksPartsOfFiles: terms close together count more than far apart, and rare
// ones more than frequent ones.
func TestMatchRanksPartsOfFiles(t *testing.T) {
	m := newMatcher([]string{"rotate", "token", "the"})
	far := "rotate" + string(make([]byte, 8*partSize)) + "token"
	var found []matched
	for _, text := range []string{"the", "the the", "\n\n", string(make([]byte, 2*partSize)) + far, "rotate the token"} {
		f, _ := m.match("a.md", []byte(text), nil)
		found = append(found, f)
	}
	if got, want := m.best(found), []int{4, 3, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("best %v, want %v", got, want)
	}
}
