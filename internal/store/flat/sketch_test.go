package flat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"cairn/internal/store"
)

// TestSums holds every kernel to the obvious loop, at every number of words
// and with the extreme coordinates.
func TestSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range available() {
		for words := 1; words <= 17; words++ {
			for _, n := range []int{0, 8, 16, 64} {
				coordinates := make([]int, 64*words)
				query := make([]uint64, planes*words)
				for j := range coordinates {
					coordinates[j] = rng.IntN(16) - 8
					for p := range planes {
						query[p*words+j/64] |= uint64(coordinates[j]>>p&1) << (j % 64)
					}
				}
				signs := make([]uint64, n*words)
				want := make([]int32, n)
				for i := range n {
					for w := range words {
						x := rng.Uint64()
						signs[i/lanes*lanes*words+w*lanes+i%lanes] = x
						for j := range 64 {
							want[i] += int32(x>>j&1) * int32(coordinates[64*w+j])
						}
					}
				}
				got := make([]int32, n+1)
				got[n] = 42 // the kernel must not write past the end
				k.sums(got[:n:n], signs, query)
				if !slices.Equal(got[:n], want) || got[n] != 42 {
					t.Fatalf("%s, %d words, %d vectors: %v, want %v and 42", k.name, words, n, got, want)
				}
			}
		}
	}
}

// sketched makes the sketches now.
func sketched(s *Store) {
	snap := s.snap.Load()
	for _, b := range snap.full() {
		b.sketch.Store(newSketch(b, snap.dim, snap.stride, s.kernel))
	}
}

// TestSketchesChangeNothing compares searches with and without sketches: with
// every kernel, on one and several goroutines, with filters, with dead slots
// and a block that is not full, for vectors whose coordinates are alike and for
// such as have most of their weight in a few. One hit in 1,000 may be another,
// but none of the first ten.
func TestSketchesChangeNothing(t *testing.T) {
	for _, kind := range []string{"alike", "few"} {
		rng := rand.New(rand.NewPCG(5, 5))
		vector := func(i int) []float32 {
			v := clustered(rng, i)
			if kind == "few" {
				for j := range v {
					if j%48 != 0 {
						v[j] /= 20
					}
				}
				normalise(v)
			}
			return v
		}
		s := Memory(384)
		var entries []store.VectorEntry
		for i := range sketchFrom + blockLen/2 {
			entries = append(entries, store.VectorEntry{Chunk: fmt.Sprintf("p%d#a.0", i), Path: fmt.Sprintf("%d/p%d", i%3, i), Vector: vector(i)})
		}
		if err := s.Update(t.Context(), entries, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Update(t.Context(), nil, []string{"p7#a.0", "p300#a.0", "p5000#a.0"}); err != nil {
			t.Fatal(err)
		}
		type ask struct {
			vector []float32
			k      int
			filter store.Filter
			want   []store.Hit
		}
		s.sketching.Store(true) // none are made before sketched makes them
		var asks []ask
		for i := range 60 {
			a := ask{vector: vector(i), k: []int{1, 10, 100, 300}[i%4]}
			if i%5 == 0 {
				a.filter.PathPrefix = "1/"
			}
			asks = append(asks, a)
		}
		for i := range asks {
			a := &asks[i]
			a.want, _ = s.Search(t.Context(), a.vector, a.k, a.filter)
			if len(a.want) != a.k {
				t.Fatalf("%d hits, want %d", len(a.want), a.k)
			}
		}
		sketched(s)
		for _, k := range available() {
			for _, threads := range []int{1, 3} {
				s.kernel, s.options.Threads = k, threads
				differ, hits := 0, 0
				for _, a := range asks {
					got, err := s.Search(t.Context(), a.vector, a.k, a.filter)
					if err != nil {
						t.Fatal(err)
					}
					if n := min(10, a.k); !slices.Equal(got[:n], a.want[:n]) {
						t.Errorf("%s, %s, %d goroutines: the first of %d are %v, want %v", kind, k.name, threads, a.k, got[:n], a.want[:n])
					}
					for _, hit := range a.want {
						if hits++; !slices.Contains(got, hit) {
							differ++
						}
					}
				}
				if 1000*differ > hits {
					t.Errorf("%s, %s, %d goroutines: %d of %d hits are missing", kind, k.name, threads, differ, hits)
				}
			}
		}
	}
}

// TestSketchesComeByThemselves searches until the background has made them.
func TestSketchesComeByThemselves(t *testing.T) {
	s := Memory(64)
	rng := rand.New(rand.NewPCG(6, 6))
	var entries []store.VectorEntry
	for i := range sketchFrom {
		entries = append(entries, store.VectorEntry{Chunk: fmt.Sprintf("p#a.%d", i), Path: "p", Vector: normal(rng, 64, nil)})
	}
	if err := s.Update(t.Context(), entries, nil); err != nil {
		t.Fatal(err)
	}
	query := normal(rng, 64, nil)
	want := search(t, s, query, 20)
	if s.sketching.Load() {
		t.Error("the first search begins to make sketches: it may be the only one")
	}
	blocks := s.snap.Load().full()
	for blocks[len(blocks)-1].sketch.Load() == nil {
		if got := search(t, s, query, 20); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	if got := search(t, s, query, 20); !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}

// TestEstimates holds the estimates and comparisons of every kernel to the portable ones,
// bit for bit.
func TestEstimates(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var sums [blockLen]int32
	var factor, sigma, want [blockLen]float32
	for i := range blockLen {
		sums[i], factor[i], sigma[i] = int32(rng.IntN(6000)-3000), rng.Float32(), rng.Float32()/30
	}
	estimatesPortable(&want, &sums, &factor, .013, -4.1, .27)
	for _, floor := range []float32{float32(math.Inf(-1)), want[17], want[17] + 3.5*sigma[17], 1e9} {
		var wantBits blockBits
		atLeastPortable(&wantBits, &want, &sigma, 3.5, floor)
		for _, k := range available() {
			var got [blockLen]float32
			var gotBits blockBits
			k.estimates(&got, &sums, &factor, .013, -4.1, .27)
			k.atLeast(&gotBits, &got, &sigma, 3.5, floor)
			if got != want || gotBits != wantBits {
				t.Errorf("%s, floor %v: the estimates are equal: %v, the places: %v", k.name, floor, got == want, gotBits == wantBits)
			}
		}
	}
}
