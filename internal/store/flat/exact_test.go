package flat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"cairn/internal/store"
)

// fineMargin is what a cosine of vectors of 384 coordinates of 16 bits may be off.
const fineMargin = 1e-5

// dot is the inner product in float64.
func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

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
				s.kernel.dots(dots, snap.blocks[i/blockLen].rows.Load().codes, q, snap.stride)
			}
			exact := dot(query, v)
			coded := float64(float32(dots[i%blockLen]-q.bias) * snap.blocks[i/blockLen].scale[i%blockLen] * q.scale)
			sum += (coded - exact) * (coded - exact)
			most = max(most, math.Abs(coded-exact))
			want[i] = store.Hit{Chunk: entries[i].Chunk, Score: exact}
		}
		slices.SortFunc(want, store.CompareHits)
		scores := map[string]float64{}
		for _, hit := range want {
			scores[hit.Chunk] = hit.Score
		}
		for i, hit := range search(t, s, query, k) {
			if score := scores[hit.Chunk]; math.Abs(hit.Score-score) > fineMargin || math.Abs(score-want[i].Score) > fineMargin {
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
		s.kernel = portable
		processors(t, 1)
		want := search(t, s, query, 30)
		for _, k := range available() {
			for threads := 1; threads <= 3; threads++ {
				s.kernel = k
				processors(t, threads)
				if got := search(t, s, query, 30); !slices.Equal(got, want) {
					t.Errorf("%s with %d goroutines: %v, want %v", k.name, threads, got, want)
				}
			}
		}
	}
}

// TestFineVectors: a vector in 16 bits is the same when it is stored a second time, and
// its cosines are those of float32 to the fifth digit.
func TestFineVectors(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, dim := range []int{1, 2, 3, 383, 384, 1024} {
		for range 200 {
			v, query := normal(rng, dim, nil), normal(rng, dim, nil)
			code, low := make([]byte, dim), make([]byte, dim)
			scale := quantise(code, low, v)
			again, lowAgain := make([]byte, dim), make([]byte, dim)
			restored := restore(code, low, scale)
			quantise(again, lowAgain, restored)
			if !slices.Equal(code, again) || !slices.Equal(low, lowAgain) {
				t.Fatalf("dimension %d: stored a second time, %v is another vector", dim, v)
			}
			cosine := newFineQuery(query).cosine(available()[0], code, low, scale)
			if off := math.Abs(cosine - dot(query, v)); off > 3e-5 || dim >= 384 && off > fineMargin {
				t.Errorf("dimension %d: a cosine is off by %v", dim, off)
			}
			if plain := dot(newFineQuery(query).restore(), restored); math.Abs(cosine-plain) > 1e-7 {
				t.Errorf("dimension %d: cosine %v, of the restored vectors %v", dim, cosine, plain)
			}
		}
	}
}

// restore returns the query as the numbers have it.
func (q *fineQuery) restore() []float32 {
	v := make([]float32, len(q.numbers))
	for i, n := range q.numbers {
		v[i] = float32(float64(n) * q.scale)
	}
	return v
}

// BenchmarkExact scores 600 vectors of a store of 20,000.
func BenchmarkExact(b *testing.B) {
	snap := synthetic(b, b.TempDir(), 20_000).snap.Load()
	rng := rand.New(rand.NewPCG(1, 9))
	slots := rng.Perm(20_000)[:600]
	slices.Sort(slots)
	query := clustered(rng, 3)
	for b.Loop() {
		if _, err := snap.exact(available()[0], query, slots, 1); err != nil {
			b.Fatal(err)
		}
	}
}
