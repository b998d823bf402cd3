package legs

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/store"
	"cairn/internal/store/keyword"
	"cairn/internal/text/query"
)

// entries are n entries; body distinguishes versions of their texts.
func entries(n int, body string) func(i int) Entry {
	return func(i int) Entry {
		name := fmt.Sprintf("name%d", i)
		return Entry{ID: fmt.Sprintf("id%d of %d", i, n), Words: store.KeywordEntry{Title: name, Body: body}, Texts: []string{name, name + " " + body}}
	}
}

// all yields the first n entries.
func all(n int, entry func(i int) Entry) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for i := range n {
			if !yield(entry(i)) {
				return
			}
		}
	}
}

func open(t *testing.T, dir string, e *testutil.HashEmbedder) (*Legs, *keyword.Index) {
	t.Helper()
	k, err := keyword.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return New(2, Options{Keyword: k, Embedder: e}), k
}

// search returns the ids found by words, and those found by the vectors of the first texts.
func search(t *testing.T, l *Legs, words string) (byWords, byVector []string) {
	t.Helper()
	vector, err := l.o.Embedder.EmbedQuery(t.Context(), words)
	if err != nil {
		t.Fatal(err)
	}
	h, err := l.Search(t.Context(), query.Query{Words: words}, vector, 100)
	if err != nil {
		t.Fatal(err)
	}
	for id := range h.Words {
		byWords = append(byWords, id)
	}
	for id := range h.Cosines[0] {
		byVector = append(byVector, id)
	}
	slices.Sort(byWords)
	slices.Sort(byVector)
	return byWords, byVector
}

// TestSyncAcrossProcesses: Sync indexes only the words that an earlier process has not
// indexed, and removes those that are not current.
func TestSyncAcrossProcesses(t *testing.T) {
	dir := t.TempDir()
	first, k := open(t, dir, &testutil.HashEmbedder{})
	if err := first.Sync(t.Context(), all(3, entries(3, "old")), nil); err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	second, _ := open(t, dir, &testutil.HashEmbedder{})
	indexed := 0
	count := func(done, total int) { indexed = done }
	if err := second.Sync(t.Context(), all(3, entries(3, "old")), count); err != nil || indexed != 0 || second.Missing() != 3 {
		t.Errorf("%d of the same entries indexed, %d missing, %v", indexed, second.Missing(), err)
	}
	changed := func(i int) Entry {
		if i == 1 {
			return entries(3, "new")(i)
		}
		return entries(3, "old")(i)
	}
	if err := second.Sync(t.Context(), all(2, changed), count); err != nil || indexed != 1 {
		t.Errorf("%d entries indexed, want the changed one, %v", indexed, err)
	}
	if err := second.Embed(t.Context(), nil); err != nil || !second.HasVectors() {
		t.Fatalf("%d missing, %v", second.Missing(), err)
	}
	for words, want := range map[string][]string{"old": {"id0 of 3"}, "new": {"id1 of 3"}, "name2": nil} {
		byWords, byVector := search(t, second, words)
		if !slices.Equal(byWords, want) || !slices.Equal(byVector, []string{"id0 of 3", "id1 of 3"}) {
			t.Errorf("%q finds %v by words and %v by vectors", words, byWords, byVector)
		}
	}
}

// TestAddThenEmbed: an entry is found by words at once, and by vectors after Embed, also
// after an Embed that failed.
func TestAddThenEmbed(t *testing.T) {
	failure := errors.New("failure")
	e := &testutil.HashEmbedder{Before: func([]string) error { return failure }}
	l, _ := open(t, t.TempDir(), e)
	list := []Entry{entries(2, "body")(0), entries(2, "body")(1)}
	for range 2 { // the second changes nothing
		if err := l.Add(t.Context(), list); err != nil || l.Missing() != 2 || l.HasVectors() {
			t.Fatalf("%d missing, %v", l.Missing(), err)
		}
	}
	if err := l.Embed(t.Context(), nil); !errors.Is(err, failure) {
		t.Errorf("error %v, want that of the model", err)
	}
	if byWords, byVector := search(t, l, "body"); len(byWords) != 2 || byVector != nil {
		t.Errorf("found %v by words and %v by vectors", byWords, byVector)
	}
	changes := l.Changes()
	e.Before = nil
	if err := l.Embed(t.Context(), nil); err != nil || l.Missing() != 0 || e.Embedded() != 4 || l.Changes() == changes {
		t.Errorf("%d missing, %d texts embedded, %v", l.Missing(), e.Embedded(), err)
	}
	vector, err := e.EmbedQuery(t.Context(), "name0")
	if err != nil {
		t.Fatal(err)
	}
	h := Hits{Cosines: []map[string]float64{{}, {"id1 of 2": 0.5}}}
	if err := l.Complete(t.Context(), &h, vector, []string{"id0 of 2", "id1 of 2", "unknown"}); err != nil {
		t.Fatal(err)
	}
	if first := h.Cosines[0]; math.Abs(first["id0 of 2"]-1) > 1e-3 || !math.IsNaN(first["unknown"]) || h.Cosines[1]["id1 of 2"] != 0.5 {
		t.Errorf("cosines %v", h.Cosines)
	}
}
