package flat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"cairn/internal/base/testutil"
	"cairn/internal/store"
)

// sketched makes the sketches now.
func sketched(s *Store) {
	snap := s.snap.Load()
	for _, b := range snap.full() {
		b.sketch.Store(newSketch(b, b.rows.Load().codes, snap.dim, snap.stride, s.kernel))
	}
}

// TestSketchesChangeNothing compares searches with and without sketches, with every kernel,
// on one and several goroutines, with filters, with dead slots and a block that is not
// full. The vectors have coordinates that are alike, or most of their weight in a few. One
// hit in 1,000 may be another, but none of the first ten.
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
		for i := range testutil.Few(60) {
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
				s.kernel = k
				processors(t, threads)
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

// TestEstimates holds the estimates and comparisons of every kernel to the obvious loop, bit
// for bit, at several strides and with queries whose sums are as large as they can be.
func TestEstimates(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, stride := range []int{64, 128, 384, maxWordStride, maxWordStride + 64} {
		for _, kind := range []string{"random", "alike", "zero"} {
			query := make([]float32, stride)
			for j := range query {
				query[j] = map[string]float32{"random": float32(rng.NormFloat64()), "alike": .1, "zero": 0}[kind]
			}
			s := allocateSketch(stride)
			for i := range s.signs {
				s.signs[i] = byte(rng.Uint32())
				if kind == "alike" && i < len(s.signs)/2 {
					s.signs[i] = 255
				}
			}
			for i := range blockLen {
				s.bySign.factor[i], s.bySign.sigma[i] = rng.Float32(), rng.Float32()/30
			}
			for _, k := range available() {
				of := newQuery(query, stride)
				q := newSketchQuery(query, of, k)
				want := obviousEstimates(s, q, query, of.scale, .27)
				var got [blockLen]float32
				k.estimates(&got, s, q, .27)
				if got != want {
					t.Fatalf("%s, stride %d, %s: the estimates differ", k.name, stride, kind)
				}
				for _, floor := range []float32{float32(math.Inf(-1)), want[17], want[17] + 3.5*s.bySign.sigma[17], 1e9} {
					var wantBits, bits blockBits
					atLeastPortable(&wantBits, &want, s.bySign.sigma, 3.5, floor)
					k.atLeast(&bits, &want, s.bySign.sigma, 3.5, floor)
					if bits != wantBits {
						t.Errorf("%s, stride %d, %s, floor %v: the places differ", k.name, stride, kind, floor)
					}
				}
			}
		}
	}
}

// obviousEstimates takes the numbers of the query from its step and the signs bit by bit.
func obviousEstimates(s *sketch, q *sketchQuery, query []float32, scale, centre float32) (out [blockLen]float32) {
	stride := len(query)
	step := q.slope * scale / 2
	for i := range out {
		sum := 0
		for j, x := range query {
			sign := s.signs[i/lanes*lanes*stride/8+j/8*lanes+i%lanes]>>(j%8)&1 != 0
			if u := int(math.RoundToEven(float64(x / step))); sign == (u > 0) {
				sum += max(u, -u)
			}
		}
		out[i] = centre + float32(s.bySign.factor[i]*(float32(q.slope*float32(sum))+q.offset))
	}
	return out
}
