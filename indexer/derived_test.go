package indexer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/store"
)

// TestLostIndexIsFilledAgain: each index is derived, and its folder can go.
func TestLostIndexIsFilledAgain(t *testing.T) {
	root := generated(t, 10)
	f := newFixture(t, root, nil)
	f.run()
	other := newFixture(t, root, nil) // with empty indexes
	s := f.stores
	s.Keyword, s.Vectors = other.stores.Keyword, other.stores.Vectors
	x := New(s, f.embedder, nil)
	before := f.embedder.Embedded()
	if _, err := x.Run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := f.embedder.Embedded() - before; got != 0 {
		t.Errorf("filling lost vectors again embedded %d texts, want 0", got)
	}
	sameAsClean(t, root, s, f.embedder, nil)
}

// TestOlderIndexIsFilledAgain: older files with as many chunks have a lower position than the
// documents recorded.
func TestOlderIndexIsFilledAgain(t *testing.T) {
	for _, name := range []string{"text", "vectors"} {
		root, index := generated(t, 4), t.TempDir()
		run := func() {
			e := &testutil.HashEmbedder{}
			s, closeAll, err := open(root, index, e)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := New(s, e, nil).Run(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			sameAsClean(t, root, s, e, nil)
			if err := closeAll(); err != nil {
				t.Fatal(err)
			}
		}
		write(t, root, "other.md", "# Other\n\nAn apple.\n")
		run()
		older := t.TempDir()
		if err := os.CopyFS(filepath.Join(older, name), os.DirFS(filepath.Join(index, name))); err != nil {
			t.Fatal(err)
		}
		write(t, root, "other.md", "# Other\n\nA pear and a plum.\n")
		run()
		if err := os.RemoveAll(filepath.Join(index, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(older, name), filepath.Join(index, name)); err != nil {
			t.Fatal(err)
		}
		run()
	}
}

// countedKeywords records the size of the largest update.
type countedKeywords struct {
	store.Keyword
	most int
}

func (k *countedKeywords) Update(ctx context.Context, entries []store.KeywordEntry, stale []string) error {
	k.most = max(k.most, len(entries))
	return k.Keyword.Update(ctx, entries, stale)
}

// TestLargeDocumentIsWrittenInParts: the chunks of one document need not be in memory at once.
func TestLargeDocumentIsWrittenInParts(t *testing.T) {
	f := newFixture(t, t.TempDir(), nil)
	f.write("large.md", strings.Repeat("# a\n\nb\n\n", 3*keywordEntries/2))
	k := &countedKeywords{Keyword: f.stores.Keyword}
	s := f.stores
	s.Keyword = k
	r, err := New(s, f.embedder, nil).RunKeywords(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if have, err := k.Count(); err != nil || have != r.Chunks || have <= keywordEntries || k.most > keywordEntries {
		t.Errorf("%d of %d chunks, at most %d in an update, %v; want all, at most %d", have, r.Chunks, k.most, err, keywordEntries)
	}
}

func TestStrangeChunksAreReported(t *testing.T) {
	f := newFixture(t, generated(t, 3), nil)
	f.run()
	if err := f.stores.Keyword.Update(t.Context(), []store.KeywordEntry{{Chunk: "ghost.md#x.0", Path: "ghost.md"}}, nil); err != nil {
		t.Fatal(err)
	}
	var diverged *DivergedError
	if _, err := f.Run(t.Context(), nil); !errors.As(err, &diverged) || diverged.Have != diverged.Want+1 {
		t.Errorf("run over an index with a strange chunk: %v, want a DivergedError", err)
	}
}
