package graphrank

import (
	"math"
	"testing"
)

// TestAffinity by hand: "in" was used once before "a", and "a" before "far". With
// n = 1, "a" is a neighbour and has the best rank, so A = 1/2. "far" shares the
// neighbour "a" of degree 2: AA = 1/ln 2, halved .7213; its rank is .85 of a's.
func TestAffinity(t *testing.T) {
	var g Graph
	g.Observe("in", "a", Sequence)
	g.Observe("a", "far", Sequence)
	g.AddNode("alone")
	got := g.Affinity([]string{"in"}, []string{"a", "far", "in", "alone", "unknown"})
	want := []float64{.5, (1/math.Log(2)/2 + .85) / 4, 0, 0, 0}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-3 {
			t.Errorf("affinity %v, want %v", got, want)
			break
		}
	}
	for _, context := range [][]string{nil, {"unknown"}, {"alone"}} {
		for _, a := range g.Affinity(context, []string{"a", "far"}) {
			if a != 0 {
				t.Errorf("context %v gives %g, want 0", context, a)
			}
		}
	}
}
