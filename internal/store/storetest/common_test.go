package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
	"cairn/internal/text/query"
)

// item is a chunk of an index of either kind. One query finds all items, those with a
// larger weight first.
type item struct {
	path   string
	n      int // of the chunk
	weight int
	labels store.Labels
}

func (i item) chunk() string { return store.ChunkID(i.path, "x", i.n) }

// subject is an index of either kind with items as its content.
type subject struct {
	*testing.T
	update func(items []item, stale []string) error
	search func(k int, f store.Filter) ([]store.Hit, error)
	index  counted
}

// counted is an index of either kind.
type counted interface{ Count() (int, error) }

// ofVectors returns a vector store of dimension 2 as a subject.
func ofVectors(t *testing.T, s store.Vectors) subject {
	return subject{
		T: t,
		update: func(items []item, stale []string) error {
			var entries []store.VectorEntry
			for _, i := range items {
				e := entry(i.path, "x", i.n, float32(i.weight), 1)
				e.Labels = i.labels
				entries = append(entries, e)
			}
			return s.Update(background, entries, stale)
		},
		search: func(k int, f store.Filter) ([]store.Hit, error) { return s.Search(background, []float32{1, 0}, k, f) },
		index:  s,
	}
}

// maxWeight is the largest weight of an item, for a text of one word.
const maxWeight = 20

func ofKeywords(t *testing.T, x store.Keyword) subject {
	return subject{
		T: t,
		update: func(items []item, stale []string) error {
			var entries []store.KeywordEntry
			for _, i := range items {
				entries = append(entries, store.KeywordEntry{
					Chunk: i.chunk(), Path: i.path, Labels: i.labels, Body: "word" + strings.Repeat(" others", maxWeight-i.weight),
				})
			}
			return x.Update(background, entries, stale)
		},
		search: func(k int, f store.Filter) ([]store.Hit, error) {
			return x.Search(background, query.Parse("word"), k, f)
		},
		index: x,
	}
}

func (s subject) put(items []item, stale ...string) {
	s.Helper()
	if err := s.update(items, stale); err != nil {
		s.Fatalf("Update(%d entries, %d stale): %v", len(items), len(stale), err)
	}
}

// finds compares the paths of the hits, with n if that is not 0.
func (s subject) finds(k int, f store.Filter, want string) {
	s.Helper()
	hits, err := s.search(k, f)
	if err != nil {
		s.Fatalf("Search(k %d, %+v): %v", k, f, err)
	}
	if got := strings.ReplaceAll(strings.ReplaceAll(chunks(hits), "#x.0", ""), "#x.", ":"); got != want {
		s.Errorf("the best %d of %+v: %q, want %q", k, f, got, want)
	}
}

func (s subject) holds(want int) {
	s.Helper()
	count(s.T, s.index, want)
}

func count(t *testing.T, s counted, want int) {
	t.Helper()
	if n, err := s.Count(); n != want || err != nil {
		t.Errorf("Count: %d, %v, want %d", n, err, want)
	}
}

// update updates an index of entries of type E.
func update[E any](t *testing.T, s interface {
	Update(context.Context, []E, []string) error
}, entries []E, stale []string) {
	t.Helper()
	if err := s.Update(background, entries, stale); err != nil {
		t.Fatalf("Update(%d entries, %d stale): %v", len(entries), len(stale), err)
	}
}

// common are the tests for both kinds.
var common = []struct {
	name string
	test func(subject)
}{
	{"Empty", empty}, {"K", howMany}, {"Ties", ties}, {"Filters", filters}, {"FilterBeforeCut", filterBeforeCut}, {"Replace", replace},
	{"Stale", stale}, {"StrangeNames", strangeNames}, {"Labels", labelsChange}, {"Large", large},
}

func empty(s subject) {
	s.holds(0)
	s.finds(10, store.Filter{}, "")
	s.put(nil)
	s.put(nil, "unknown", "a#b.0", "")
	s.holds(0)
}

func howMany(s subject) {
	s.put([]item{{path: "c", weight: -1}, {path: "a", weight: 9}, {path: "b", weight: 2}})
	s.holds(3)
	for k, want := range map[int]string{-1: "", 0: "", 1: "a", 2: "a b", 3: "a b c", 1000: "a b c"} {
		s.finds(k, store.Filter{}, want)
	}
}

// ties has more equal items than any implementation rescores.
func ties(s subject) {
	var items []item
	for i := range 700 {
		items = append(items, item{path: fmt.Sprintf("p%03d", (i*389)%700), weight: 3})
	}
	s.put(append(items, item{path: "z", weight: 5}))
	s.finds(4, store.Filter{}, "z p000 p001 p002")
}

func filters(s subject) {
	items := []item{
		{path: "docs/a.md", labels: store.Labels{Found: true, Tags: []string{"Auth", "api"}, Priority: "High", Assignee: "@Ann"}},
		{path: "docs/b.md", labels: store.Labels{Found: true, Tags: []string{"ui"}, Priority: "low"}},
		{path: "docs/sub/authentication.md", labels: store.Labels{Found: true}},
		{path: "docs/sub/authorisation.md"},
		{path: "notes/d.md"},
		{path: "notes/é.md", labels: store.Labels{Found: true, Tags: []string{"über"}, Priority: "high", Assignee: "@bob"}},
		{path: "src/e.go"},
		{path: "team/.cairn/cards/f.md"},
	}
	for i := range items {
		items[i].weight = len(items) - i
	}
	s.put(items)
	for _, c := range []struct {
		f    store.Filter
		want string
	}{
		{store.Filter{}, "docs/a.md docs/b.md docs/sub/authentication.md docs/sub/authorisation.md notes/d.md notes/é.md src/e.go team/.cairn/cards/f.md"},
		{store.Filter{Kind: store.Code}, "src/e.go"},
		{store.Filter{Paths: []string{"docs/a.md", "docs/sub", "notes/é.md", "x.md"}}, "docs/a.md notes/é.md"},
		{store.Filter{Paths: []string{"docs/a.md", "notes/é.md"}, PathPrefix: "docs/"}, "docs/a.md"},
		{store.Filter{Paths: []string{}}, ""},
		{store.Filter{Kind: store.Cards}, "team/.cairn/cards/f.md"},
		{store.Filter{Kind: store.Docs}, "docs/a.md docs/b.md docs/sub/authentication.md docs/sub/authorisation.md notes/d.md notes/é.md"},
		{store.Filter{Kind: store.Docs, PathPrefix: "notes/"}, "notes/d.md notes/é.md"},
		{store.Filter{Kind: store.Code, PathPrefix: "docs/"}, ""},
		{store.Filter{Tags: []string{"auth"}}, "docs/a.md"},
		{store.Filter{Tags: []string{"UI", "API"}}, "docs/a.md docs/b.md"},
		{store.Filter{Tags: []string{"ÜBER"}}, "notes/é.md"},
		{store.Filter{Tags: []string{"none"}}, ""},
		{store.Filter{Priority: "HIGH"}, "docs/a.md notes/é.md"},
		{store.Filter{Assignee: "@ann"}, "docs/a.md"},
		{store.Filter{Priority: "high", Assignee: "@bob"}, "notes/é.md"},
		{store.Filter{PathPrefix: "docs/"}, "docs/a.md docs/b.md docs/sub/authentication.md docs/sub/authorisation.md"},
		{store.Filter{PathPrefix: "docs/sub/auth"}, "docs/sub/authentication.md docs/sub/authorisation.md"},
		{store.Filter{PathPrefix: "docs/sub/authentic"}, "docs/sub/authentication.md"},
		{store.Filter{PathPrefix: "docs/sub/authors"}, ""},
		{store.Filter{PathPrefix: "Docs/"}, ""},
		{store.Filter{PathPrefix: "notes/é"}, "notes/é.md"},
		{store.Filter{PathPrefix: "notes/", Tags: []string{"über", "ui"}, Priority: "high", Assignee: "@BOB"}, "notes/é.md"},
		{store.Filter{PathPrefix: "docs/", Priority: "high"}, "docs/a.md"},
		{store.Filter{PathPrefix: "docs/", Priority: "high", Assignee: "@bob"}, ""},
	} {
		s.finds(10, c.f, c.want)
	}
}

// filterBeforeCut has a single document that passes the filter, far below the best k.
func filterBeforeCut(s subject) {
	var items []item
	for i := range 500 {
		items = append(items, item{path: fmt.Sprintf("near/%03d", i), weight: 10 + i%7})
	}
	s.put(append(items, item{path: "far", weight: -5}, item{path: "far", n: 1, weight: 1}))
	s.finds(5, store.Filter{PathPrefix: "far"}, "far:1 far")
}

func replace(s subject) {
	s.put([]item{{path: "a", weight: 9}, {path: "b", weight: 5}})
	s.put([]item{{path: "a", weight: 7}, {path: "a", weight: 1}}) // the later one wins
	s.holds(2)
	s.finds(5, store.Filter{}, "b a")
	s.put([]item{{path: "a", weight: 9}}, "a#x.0") // stale and added in one batch
	s.holds(2)
	s.finds(5, store.Filter{}, "a b")
}

func stale(s subject) {
	s.put([]item{{path: "p", weight: 5}, {path: "p", n: 1, weight: 4}, {path: "q", weight: 3}})
	s.put(nil, "p#x.0", "p#x.0", "unknown#x.0", "p#x", "")
	s.holds(2)
	s.finds(5, store.Filter{}, "p:1 q")
	s.put(nil, "p#x.1", "q#x.0")
	s.holds(0)
	s.finds(5, store.Filter{}, "")
}

func strangeNames(s subject) {
	var items []item
	var all []string
	for i, path := range []string{"a b/c#d.md", "日本語/文書.md", "quote\"'`;.md", "a\nb", strings.Repeat("long/", 300) + "x.md", "%2e%2e"} {
		items = append(items, item{path: path, n: i, weight: i})
		all = append(all, items[i].chunk())
	}
	s.put(items)
	if hits, err := s.search(100, store.Filter{}); len(hits) != len(items) || err != nil {
		s.Errorf("%d hits, %v, want %d", len(hits), err, len(items))
	}
	s.finds(100, store.Filter{PathPrefix: "日本"}, "日本語/文書.md:1")
	s.put(nil, all...)
	s.holds(0)
}

// labelsChange replaces a chunk by an equal one with other labels.
func labelsChange(s subject) {
	for _, tag := range []string{"old", "new"} {
		s.put([]item{{path: "p", labels: store.Labels{Found: true, Tags: []string{tag}}}})
	}
	s.finds(5, store.Filter{Tags: []string{"old"}}, "")
	s.finds(5, store.Filter{Tags: []string{"new"}}, "p")
}

// large has more chunks than a client sends in one request.
func large(s subject) {
	var items []item
	var all []string
	for i := range 1500 {
		items = append(items, item{path: fmt.Sprintf("p%04d", i), weight: i % 7})
		all = append(all, items[i].chunk())
	}
	s.put(items)
	s.holds(1500)
	hits, err := s.search(1200, store.Filter{})
	found := map[string]bool{}
	for _, h := range hits {
		found[h.Chunk] = true
	}
	if len(found) != 1200 || err != nil {
		s.Errorf("%d hits, %v, want 1200", len(found), err)
	}
	s.put(nil, slices.Clone(all[100:])...)
	s.holds(100)
}
