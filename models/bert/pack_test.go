package bert

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// slowNarrow is narrow that rounds all weights for each scale it tries.
func slowNarrow(w []int32, group int) float32 {
	worst := slowWorst(w, group)
	if worst <= maxPairSum {
		return 1
	}
	original := slices.Clone(w)
	for f := float32(worst) / (maxPairSum + 0.5); ; f *= 1.005 {
		for i, v := range original {
			w[i] = rounded(v, f)
		}
		if slowWorst(w, group) <= maxPairSum {
			return f
		}
	}
}

func slowWorst(w []int32, group int) (worst int32) {
	sums := map[[3]int]int32{} // by group, pair and sign
	for i, v := range w {
		key := [3]int{i / (4 * group), i / 2 % 2, 0}
		if v < 0 {
			key[2], v = 1, -v
		}
		sums[key] += v
		worst = max(worst, sums[key])
	}
	return worst
}

func TestNarrow(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	narrowed := 0
	for range 2000 {
		w := make([]int32, 16*(1+rng.IntN(7)))
		spread := 60 * rng.Float64()
		for i := range w {
			w[i] = int32(min(max(spread*rng.NormFloat64(), -128), 127))
		}
		group := 1 + rng.IntN(2)
		got, want := slices.Clone(w), slices.Clone(w)
		f, slow := narrow(got, make([]int32, len(w)/(2*group)), group), slowNarrow(want, group)
		if f != slow || !slices.Equal(got, want) {
			t.Fatalf("groups of %d, %v: got %v with factor %g, want %v with %g", group, w, got, f, want, slow)
		}
		if f != 1 {
			narrowed++
		}
	}
	if narrowed < 500 {
		t.Errorf("only %d of 2000 columns were narrowed", narrowed)
	}
}

// TestInterleave: weights are packed equally row by row and column by column.
func TestInterleave(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	const in, out = 32, 21
	signed := linear{in: in, out: out, codes: make([]byte, in*out), zeros: []int32{0}, scales: []float32{.5}, signed: true, bias: make([]float32, out)}
	unsigned, shifted := signed, signed
	unsigned.signed, unsigned.zeros, unsigned.codes = false, []int32{128}, make([]byte, in*out)
	shifted.zeros, shifted.codes = []int32{1}, make([]byte, in*out)
	for i := range signed.codes {
		v := rng.IntN(254) - 127
		signed.codes[i], unsigned.codes[i], shifted.codes[i] = byte(v), byte(v+128), byte(v+1)
	}
	k := *available()[len(available())-1]
	k.group = 1
	var want *packed
	for _, l := range []*linear{&shifted, &signed, &unsigned} {
		columns := columnsOf(nil, l, 2, 19, .25, k.cols)
		if fast := interleave(&k, columns[:k.cols], make([]int8, in*k.cols)) != nil; fast != (l != &shifted) {
			t.Errorf("zero points %d: row by row %v", l.zeros, fast)
		}
		p, err := pack(new(arena), &k, columns, 2)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = p
		} else if !slices.Equal(p.codes, want.codes) || !slices.Equal(p.scale, want.scale) || !slices.Equal(p.sums, want.sums) {
			t.Errorf("zero points %d: other weights than column by column", l.zeros)
		}
	}
}
