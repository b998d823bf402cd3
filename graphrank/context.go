package graphrank

import (
	"maps"
	"slices"
)

// Affinity returns how closely each candidate is related to the context, in [0, 1). It
// is the mean of the candidate's Relatedness and its Personalized PageRank from the
// context, relative to the best one, and is smaller while there are few observations:
//
//	A(v) = n/(n+1) · ( Relatedness(v, C) + P(v)/max P ) / 2
//
// where n is the sum of the counts of all edges at the context C, and max P is over the
// nodes outside C. The affinity of a node in the context is 0. If the graph contains no
// node of the context, every affinity is 0.
func (g *Graph) Affinity(context, candidates []string) []float64 {
	out := g.Proximity(context, candidates, damping)
	uses := g.observed(context)
	for i, v := range candidates {
		out[i] = (out[i] + g.Relatedness(v, context)*uses/(uses+1)) / 2
	}
	return out
}

// Proximity returns the Personalized PageRank of each candidate from the context, relative
// to the best node outside of it, in [0, 1):
//
//	P(v)/max P · n/(n+1)
//
// with n as in Affinity. follow is the probability that the walk follows an edge instead of
// returning to the context. The proximity of a node in the context is 0.
func (g *Graph) Proximity(context, candidates []string, follow float64) []float64 {
	out := make([]float64, len(candidates))
	uses := g.observed(context)
	if uses == 0 {
		return out
	}
	rank := g.personalized(context, follow)
	maps.DeleteFunc(rank, func(id string, _ float64) bool { return slices.Contains(context, id) })
	if len(rank) == 0 {
		return out
	}
	best := slices.Max(slices.Collect(maps.Values(rank)))
	for i, v := range candidates {
		out[i] = rank[v] / best * uses / (uses + 1)
	}
	return out
}

// observed returns the sum of the counts of all edges at the nodes.
func (g *Graph) observed(nodes []string) (n float64) {
	for _, c := range nodes {
		for e := range g.Out(c) {
			n += e.Count
		}
		for e := range g.In(c) {
			n += e.Count
		}
	}
	return n
}
