package flat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"cairn/internal/store"
)

// deviation compares the top k of a search with that of float32 for every
// query, and returns the part of hits that differ and the standard deviation
// and maximum of the error of 8-bit cosines.
func deviation(t *testing.T, vectors, queries [][]float32, k int) (missed, deviation, most float64) {
	t.Helper()
	s := Memory(len(vectors[0]))
	var entries []store.VectorEntry
	for i, v := range vectors {
		entries = append(entries, store.VectorEntry{Chunk: fmt.Sprintf("p#a.%d", i), Path: "p", Vector: v})
	}
	if err := s.Update(t.Context(), entries, nil); err != nil {
		t.Fatal(err)
	}
	snap := s.snap.Load()
	var sum float64
	for _, query := range queries {
		want := make([]store.Hit, len(vectors))
		q := newQuery(query, snap.stride)
		dots := make([]int32, blockLen)
		for i, v := range vectors {
			if i%blockLen == 0 {
				s.kernel.dots(dots, snap.blocks[i/blockLen].codes, q, snap.stride)
			}
			exact := dot(query, v)
			coded := float64(float32(dots[i%blockLen]-q.bias) * snap.blocks[i/blockLen].scale[i%blockLen] * q.scale)
			sum += (coded - exact) * (coded - exact)
			most = max(most, math.Abs(coded-exact))
			want[i] = store.Hit{Chunk: entries[i].Chunk, Score: exact}
		}
		slices.SortFunc(want, compareHits)
		for i, hit := range search(t, s, query, k) {
			if hit != want[i] {
				missed++
			}
		}
	}
	return missed / float64(k*len(queries)), math.Sqrt(sum / float64(len(vectors)*len(queries))), most
}

// TestErrorOfCodes holds the margin of the rescoring against the errors of
// 8-bit cosines, and searches to the float32 order, on synthetic clusters.
func TestErrorOfCodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var vectors, queries [][]float32
	for i := range 6000 {
		vectors = append(vectors, clustered(rng, i%8))
	}
	for i := range 20 {
		queries = append(queries, clustered(rng, i%8))
	}
	for _, k := range []int{1, 10, 100} {
		missed, sd, most := deviation(t, vectors, queries, k)
		t.Logf("k %d: %.3f %% of hits differ, error of 8-bit cosines: standard deviation %.5f, at most %.5f", k, 100*missed, sd, most)
		if missed > 0.001 || most > margin {
			t.Errorf("k %d: %.3f %% of hits differ, want at most 0.1 %%; error %.5f, want at most %v", k, 100*missed, most, margin)
		}
	}
}

// TestErrorOnReference is the same on real vectors of all-MiniLM-L6-v2.
func TestErrorOnReference(t *testing.T) {
	vectors := reference(t)
	for _, k := range []int{1, 10, 100} {
		missed, sd, most := deviation(t, vectors, vectors, k)
		t.Logf("k %d: %.3f %% of hits differ, error of 8-bit cosines: standard deviation %.5f, at most %.5f", k, 100*missed, sd, most)
		if missed > 0.001 || most > margin {
			t.Errorf("k %d: %.3f %% of hits differ, want at most 0.1 %%; error %.5f, want at most %v", k, 100*missed, most, margin)
		}
	}
}

// TestThreadsAgree searches with one and several goroutines and every kernel:
// the hits and their scores must be the same.
func TestThreadsAgree(t *testing.T) {
	s := synthetic(t, t.TempDir(), sketchFrom-500) // with sketches: TestSketchesChangeNothing
	rng := rand.New(rand.NewPCG(8, 8))
	for i := range 10 {
		query := clustered(rng, i)
		s.kernel, s.options.Threads = portable, 1
		want := search(t, s, query, 30)
		for _, k := range available() {
			for threads := 1; threads <= 3; threads++ {
				s.kernel, s.options.Threads = k, threads
				if got := search(t, s, query, 30); !slices.Equal(got, want) {
					t.Errorf("%s with %d goroutines: %v, want %v", k.name, threads, got, want)
				}
			}
		}
	}
}
