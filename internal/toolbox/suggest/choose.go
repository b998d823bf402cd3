package suggest

import (
	"cmp"
	"math"
	"slices"

	"cairn/internal/toolbox/toolsearch"
)

// Constants of the size of a plan.
const (
	// minProbability is the probability of a size that no past intent had.
	minProbability = 1e-3
	// oddsSlope and evenOdds convert the ratio of a score to the best into log-odds.
	// They were fitted on each half of 3,027 intents with a trusted memory and tested on the
	// other; see benchmarks/toolquality.md.
	oddsSlope, evenOdds = 10, 0.67
)

// agrees returns 1 if a tool has a requested action, −1 if it has another, and 0 if either
// is unknown. A tool for writing can also make or change things.
func agrees(has, requested toolsearch.Actions) float64 {
	if has == toolsearch.Writing {
		has |= toolsearch.Making | toolsearch.Changing
	}
	switch {
	case has == 0 || requested == 0:
		return 0
	case has&requested != 0:
		return 1
	}
	return -1
}

// choose returns the first k of the ranked tools, at most limit, for the k at which
//
//	ln P(k) + trust·Σ 10·(score(i)/score(1) − 0.67) for i ≤ k
//
// is largest. With votes of past intents, the scores of used and unused tools differ, so that
// a score indicates how likely its tool is part of the plan. P is the prior probability of a
// size:
//
//	P = 0.001 + (1 − trust/2)·all + trust/2·similar
//
// where all is the distribution over all past intents, and similar that over the voters,
// weighted by their votes.
func (p *planner) choose(r *toolsearch.Ranking, u *toolsearch.Usage, limit int) []toolsearch.Candidate {
	cs := ownScores(r)
	if len(cs) == 0 {
		return nil
	}
	prior := sizes(r, u, limit)
	best, size := math.Inf(-1), 1
	top := max(own(&cs[0]), 1e-9)
	var odds float64
	for k := 1; k <= min(limit, len(cs)); k++ {
		odds += oddsSlope * (own(&cs[k-1])/top - evenOdds)
		if v := math.Log(prior[k]) + r.Trust*odds; v > best {
			best, size = v, k
		}
	}
	for i := range size {
		pick := partPick{lead: own(&cs[i]) / top, sure: 1}
		if size < len(cs) {
			pick.lead -= own(&cs[size]) / top
		}
		p.picks[cs[i].ID] = pick
	}
	return cs[:size]
}

// sizes returns P of choose for 1 to limit; larger sizes count as limit.
func sizes(r *toolsearch.Ranking, u *toolsearch.Usage, limit int) []float64 {
	all, similar, total := make([]float64, limit+1), make([]float64, limit+1), 1e-9
	for k, n := range u.Sizes() {
		all[min(k, limit)] += n
		total += n
	}
	for _, n := range r.Neighbours {
		similar[min(len(toolsearch.Distinct(n.Trace.Tools)), limit)] += n.Weight
	}
	for k := range all {
		all[k] = minProbability + (1-r.Trust/2)*all[k]/total + r.Trust/2*similar[k]
	}
	return all
}

// own returns the score without Closure: a plan adds a tool that only other tools need as a
// prerequisite and does not choose it.
func own(c *toolsearch.Candidate) float64 { return c.Score - c.Closure }

// ownScores returns the candidates with a positive own score, the best first.
func ownScores(r *toolsearch.Ranking) []toolsearch.Candidate {
	cs := slices.DeleteFunc(slices.Clone(r.Candidates), func(c toolsearch.Candidate) bool { return own(&c) <= 0 })
	slices.SortStableFunc(cs, func(a, b toolsearch.Candidate) int { return cmp.Compare(own(&b), own(&a)) })
	return cs
}
