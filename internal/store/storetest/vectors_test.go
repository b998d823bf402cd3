// Package storetest tests the implementations of package store: each with the conformance
// tests, and that they agree.
package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"cairn/internal/store"
)

var background = context.Background()

// tolerance is the largest accepted error of a cosine, for coordinates of 16 bits in a few
// dimensions.
const tolerance = 3e-5

// testVectors runs the conformance tests of store.Vectors. open returns a new empty store for
// vectors of length dim, and must close it with t.Cleanup.
func testVectors(t *testing.T, open func(t *testing.T, dim int) store.Vectors) {
	for _, c := range common {
		t.Run(c.name, func(t *testing.T) { c.test(ofVectors(t, open(t, 2))) })
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, func(*testing.T, int) store.Vectors)
	}{
		{"Refused", refused}, {"Cancelled", cancelled}, {"Scores", scores}, {"CallerKeepsMemory", callerKeepsMemory}, {"Exact", exact},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

// reopen checks that a store has the same content after it was closed and opened again. It
// calls open twice with the same folder, and closes the stores.
func reopen(t *testing.T, open func(t *testing.T, dir string, dim int) store.Vectors) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(5, 5))
	s := open(t, dir, 24)
	entries := randomEntries(rng, 300, 24)
	update(t, s, entries, nil)
	update(t, s, entries[100:110], ids(entries[:50]))
	want := search(t, s, entries[200].Vector, 40, store.Filter{})
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	s = open(t, dir, 24)
	defer s.Close()
	count(t, s, 250)
	if got := search(t, s, entries[200].Vector, 40, store.Filter{}); !slices.Equal(got, want) {
		t.Errorf("after reopening: %v, want %v", got, want)
	}
	filtered := search(t, s, entries[200].Vector, 300, store.Filter{PathPrefix: entries[200].Path})
	for _, h := range filtered {
		if !strings.HasPrefix(h.Chunk, entries[200].Path+"#") {
			t.Errorf("after reopening, a filter lets %s through", h.Chunk)
		}
	}
	if len(filtered) == 0 {
		t.Error("after reopening, a filter finds nothing")
	}
}

// entry makes an entry; numbers are scaled to a unit vector.
func entry(path, anchor string, n int, numbers ...float32) store.VectorEntry {
	return store.VectorEntry{Chunk: store.ChunkID(path, anchor, n), Path: path, Vector: unit(numbers)}
}

func unit(v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	u := make([]float32, len(v))
	for i, x := range v {
		u[i] = float32(float64(x) / math.Sqrt(sum))
	}
	return u
}

func randomUnit(rng *rand.Rand, dim int) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return unit(v)
}

func randomEntries(rng *rand.Rand, n, dim int) []store.VectorEntry {
	entries := make([]store.VectorEntry, n)
	for i := range entries {
		path := fmt.Sprintf("dir%d/page%d.md", i%3, i/7)
		entries[i] = store.VectorEntry{
			Chunk: store.ChunkID(path, fmt.Sprintf("a%d", i%7), 0), Path: path, Vector: randomUnit(rng, dim),
			Labels: store.Labels{Found: i/7%5 != 0, Tags: []string{fmt.Sprintf("t%d", i/7%4)}, Priority: []string{"high", "low"}[i/7%2], Assignee: "@ann"},
		}
		if !entries[i].Labels.Found {
			entries[i].Labels = store.Labels{}
		}
	}
	return entries
}

func ids(entries []store.VectorEntry) []string {
	var ids []string
	for i := range entries {
		ids = append(ids, entries[i].Chunk)
	}
	return ids
}

func search(t *testing.T, s store.Vectors, query []float32, k int, f store.Filter) []store.Hit {
	t.Helper()
	hits, err := s.Search(background, query, k, f)
	if err != nil {
		t.Fatalf("Search(k %d, %+v): %v", k, f, err)
	}
	return hits
}

func chunks(hits []store.Hit) string {
	var names []string
	for _, h := range hits {
		names = append(names, h.Chunk)
	}
	return strings.Join(names, " ")
}

// holds checks which chunks have a vector, of length dim.
func holds(t *testing.T, s store.Vectors, dim int, chunks []string, want ...bool) {
	t.Helper()
	scores, err := s.Scores(background, unit(append(make([]float32, dim-1), 1)), chunks)
	got := make([]bool, len(scores))
	for i, score := range scores {
		got[i] = !math.IsNaN(score)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("of %q the store has %v, %v, want %v", chunks, got, err, want)
	}
}

func refused(t *testing.T, open func(*testing.T, int) store.Vectors) {
	s := open(t, 2)
	update(t, s, []store.VectorEntry{entry("p", "a", 0, 1, 0)}, nil)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, v := range map[string][]float32{
		"short": {1}, "long": {1, 0, 0}, "none": nil, "NaN": {nan, 0}, "infinite": {inf, 0}, "-infinite": {0, -inf},
	} {
		bad := entry("q", "a", 0, 1, 0)
		bad.Vector = v
		if err := s.Update(background, []store.VectorEntry{entry("p", "b", 0, 1, 0), bad}, []string{"p#a.0"}); err == nil {
			t.Errorf("%s vector: Update accepted it", name)
		}
		if _, err := s.Search(background, v, 3, store.Filter{}); err == nil {
			t.Errorf("%s vector: Search accepted it", name)
		}
		if _, err := s.Scores(background, v, []string{"p#a.0"}); err == nil {
			t.Errorf("%s vector: Scores accepted it", name)
		}
	}
	count(t, s, 1)
	if got, want := chunks(search(t, s, []float32{1, 0}, 5, store.Filter{})), "p#a.0"; got != want {
		t.Errorf("after refused updates: %q, want %q", got, want)
	}
}

func cancelled(t *testing.T, open func(*testing.T, int) store.Vectors) {
	s := open(t, 2)
	update(t, s, []store.VectorEntry{entry("p", "a", 0, 1, 0)}, nil)
	ctx, cancel := context.WithCancel(background)
	cancel()
	if err := s.Update(ctx, []store.VectorEntry{entry("p", "b", 0, 1, 0)}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Update: %v, want %v", err, context.Canceled)
	}
	if _, err := s.Search(ctx, []float32{1, 0}, 3, store.Filter{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Search: %v, want %v", err, context.Canceled)
	}
	if _, err := s.Scores(ctx, []float32{1, 0}, []string{"p#a.0"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Scores: %v, want %v", err, context.Canceled)
	}
	count(t, s, 1)
}

func scores(t *testing.T, open func(*testing.T, int) store.Vectors) {
	s := open(t, 2)
	if got, err := s.Scores(background, []float32{1, 0}, nil); err != nil || len(got) != 0 {
		t.Errorf("Scores of nothing: %v, %v", got, err)
	}
	holds(t, s, 2, []string{"p#a.0"}, false)
	update(t, s, []store.VectorEntry{entry("p", "a", 0, 1, 0), entry("p", "b", 0, 1, 1), entry("p", "c", 0, -1, 0)}, nil)
	holds(t, s, 2, []string{"p#a.0", "p#b.0", "q#a.0", "p#a.1"}, true, true, false, false)
	for i, hit := range search(t, s, []float32{1, 0}, 3, store.Filter{}) {
		if want := []float64{1, math.Sqrt2 / 2, -1}[i]; math.Abs(hit.Score-want) > tolerance {
			t.Errorf("the score of %s is %v, want %v", hit.Chunk, hit.Score, want)
		}
	}
	got, err := s.Scores(background, []float32{1, 0}, []string{"p#c.0", "unknown#a.0", "p#b.0", "p#a.0", "p#a.0"})
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{-1, math.NaN(), math.Sqrt2 / 2, 1, 1}
	if len(got) != len(want) {
		t.Fatalf("Scores: %v, want %v", got, want)
	}
	for i := range want {
		if math.IsNaN(want[i]) != math.IsNaN(got[i]) || math.Abs(got[i]-want[i]) > tolerance {
			t.Errorf("score %d: %v, want %v", i, got[i], want[i])
		}
	}
}

func callerKeepsMemory(t *testing.T, open func(*testing.T, int) store.Vectors) {
	s := open(t, 2)
	e := entry("p", "a", 0, 1, 0)
	e.Labels = store.Labels{Found: true, Tags: []string{"tag"}}
	update(t, s, []store.VectorEntry{e}, nil)
	e.Vector[0], e.Vector[1], e.Labels.Tags[0] = 0, 1, "other"
	hits := search(t, s, []float32{1, 0}, 5, store.Filter{Tags: []string{"tag"}})
	if len(hits) != 1 || math.Abs(hits[0].Score-1) > tolerance {
		t.Errorf("after the caller changed the entry: %v, want score 1", hits)
	}
}

// exact makes random updates and compares the results with those of exhaustive.
func exact(t *testing.T, open func(*testing.T, int) store.Vectors) {
	const dim = 37
	s := open(t, dim)
	rng := rand.New(rand.NewPCG(1, 2))
	all := randomEntries(rng, 1500, dim)
	stored := map[string]store.VectorEntry{}
	for range 30 {
		var entries []store.VectorEntry
		var removed []string
		for range rng.IntN(120) {
			e := all[rng.IntN(len(all))]
			e.Vector = randomUnit(rng, dim)
			entries = append(entries, e)
		}
		for range rng.IntN(40) {
			removed = append(removed, all[rng.IntN(len(all))].Chunk)
		}
		update(t, s, entries, removed)
		for _, id := range removed {
			delete(stored, id)
		}
		for _, e := range entries {
			stored[e.Chunk] = e
		}
		count(t, s, len(stored))
		f := []store.Filter{{}, {PathPrefix: "dir1/"}, {Tags: []string{"t1", "t2"}}, {Priority: "low", PathPrefix: "dir0/"}}[rng.IntN(4)]
		query, k := randomUnit(rng, dim), 1+rng.IntN(30)
		compare(t, search(t, s, query, k, f), exhaustive(stored, query, f), k)
	}
}

// exhaustive returns all hits, best first, by comparing every entry with the query.
func exhaustive(stored map[string]store.VectorEntry, query []float32, f store.Filter) []store.Hit {
	var hits []store.Hit
	for id, e := range stored {
		if !f.Match(e.Path, e.Labels) {
			continue
		}
		sum := 0.0
		for i, x := range e.Vector {
			sum += float64(x) * float64(query[i])
		}
		hits = append(hits, store.Hit{Chunk: id, Score: sum})
	}
	slices.SortFunc(hits, func(a, b store.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Chunk, b.Chunk))
	})
	return hits
}

// compare checks that got contains the best k hits of want. Hits whose scores differ by at
// most tolerance may be in another order.
func compare(t *testing.T, got, want []store.Hit, k int) {
	t.Helper()
	if len(got) != min(k, len(want)) {
		t.Errorf("%d hits, want %d", len(got), min(k, len(want)))
		return
	}
	scores := map[string]float64{}
	for _, hit := range want {
		scores[hit.Chunk] = hit.Score
	}
	for i, hit := range got {
		score, ok := scores[hit.Chunk]
		if !ok || math.Abs(hit.Score-score) > tolerance || math.Abs(score-want[i].Score) > tolerance {
			t.Errorf("hit %d: %v, want %v", i, hit, want[i])
		}
		delete(scores, hit.Chunk)
	}
}

// concurrent checks that searches during updates see complete batches. Each batch replaces
// all entries by others with equal vectors. s must be an empty store for vectors of length
// 8. Processes that share a store may see parts of batches.
func concurrent(t *testing.T, s store.Vectors) {
	const batch, rounds = 50, 40
	rng := rand.New(rand.NewPCG(3, 4))
	vectors := make([][]float32, rounds+1)
	for i := range vectors {
		vectors[i] = randomUnit(rng, 8)
	}
	round := func(i int) (entries []store.VectorEntry) {
		for n := range batch {
			entries = append(entries, store.VectorEntry{Chunk: store.ChunkID("p", "a", n), Path: "p", Vector: vectors[i]})
		}
		return entries
	}
	update(t, s, round(0), nil)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				hits, err := s.Search(background, vectors[0], 2*batch, store.Filter{})
				if err != nil || len(hits) != batch {
					t.Errorf("%d hits during updates, %v, want %d", len(hits), err, batch)
					return
				}
				for _, h := range hits {
					if math.Abs(h.Score-hits[0].Score) > tolerance {
						t.Errorf("a search saw parts of two batches: %v and %v", hits[0], h)
						return
					}
				}
				holds(t, s, 8, []string{"p#a.0", "p#a.49", "p#a.50"}, true, true, false)
			}
		})
	}
	for i := 1; i <= rounds; i++ {
		update(t, s, round(i), nil)
	}
	close(done)
	wg.Wait()
	count(t, s, batch)
}
