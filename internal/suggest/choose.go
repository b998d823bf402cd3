package suggest

import (
	"math"
	"slices"

	"cairn/internal/toolsearch"
)

// sizeShare weighs how many tools similar intents took against the gaps between
// the scores; smallest keeps a size that was never seen possible.
const (
	sizeShare = 0.4
	smallest  = 1e-3
)

// choose picks how many of the ranked tools a plan takes, at most limit: the k
// for which
//
//	0.4·ln P(k) + (score(k) − score(k+1)) / score(1)
//
// is largest. P is how many tools the similar past intents took, by weight, as
// far as the memory is trusted, and else how many tools the parts of the intent
// ask for.
func choose(r *toolsearch.Ranking, limit int) []toolsearch.Candidate {
	cs := ownScores(r)
	if len(cs) == 0 {
		return nil
	}
	prior := make([]float64, limit+1)
	expected := asked(r, cs)
	var cold float64
	for k := 1; k <= limit; k++ {
		cold += math.Exp(-math.Abs(float64(k - expected)))
	}
	for k := 1; k <= limit; k++ {
		prior[k] = smallest + (1-r.Trust)*math.Exp(-math.Abs(float64(k-expected)))/cold
	}
	for _, n := range r.Neighbours {
		if n.Trace == nil {
			continue
		}
		k := min(len(unique(n.Trace.Tools)), limit)
		prior[k] += r.Trust * n.Weight
	}
	best, size := math.Inf(-1), 1
	top := max(own(&cs[0]), 1e-9)
	for k := 1; k <= min(limit, len(cs)); k++ {
		gap := own(&cs[k-1]) / top
		if k < len(cs) {
			gap -= own(&cs[k]) / top
		}
		if v := sizeShare*math.Log(prior[k]) + gap; v > best {
			best, size = v, k
		}
	}
	return cs[:size]
}

// own is the score without what the tool gets for being needed by others: that
// does not choose it, it comes along.
func own(c *toolsearch.Candidate) float64 { return c.Score - c.Closure }

// ownScores orders the candidates by their own scores, those of them that have one.
func ownScores(r *toolsearch.Ranking) []toolsearch.Candidate {
	cs := slices.DeleteFunc(slices.Clone(r.Candidates), func(c toolsearch.Candidate) bool { return own(&c) <= 0 })
	slices.SortStableFunc(cs, func(a, b toolsearch.Candidate) int {
		switch x, y := own(&a), own(&b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return cs
}

// clearly is how near the best score of a part must be to that of the best
// part for the part to ask for a tool of its own.
const clearly = 0.7

// asked is how many different tools the parts of an intent put first.
func asked(r *toolsearch.Ranking, cs []toolsearch.Candidate) int {
	if len(r.Parts) < 2 {
		return 1
	}
	first := make([]int, len(r.Parts))
	score := make([]float64, len(r.Parts))
	for p := range r.Parts {
		first[p] = -1
		for i := range cs {
			if s := cs[i].PartScores(); p < len(s) && s[p] > score[p] {
				first[p], score[p] = i, s[p]
			}
		}
	}
	var different []int
	for p, i := range first {
		if i >= 0 && score[p] >= clearly*slices.Max(score) && !slices.Contains(different, i) {
			different = append(different, i)
		}
	}
	return max(1, len(different))
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
