package graphrank

import "slices"

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
	out := make([]float64, len(candidates))
	uses := 0.0
	for _, c := range context {
		for e := range g.Out(c) {
			uses += e.Count
		}
		for e := range g.In(c) {
			uses += e.Count
		}
	}
	if uses == 0 {
		return out
	}
	best, rank := 0.0, map[string]float64{}
	for _, s := range g.Personalized(context, g.Len()) {
		if !slices.Contains(context, s.ID) {
			rank[s.ID] = s.Score
			best = max(best, s.Score)
		}
	}
	for i, v := range candidates {
		out[i] = g.Relatedness(v, context)
		if best > 0 {
			out[i] += rank[v] / best
		}
		out[i] *= uses / (uses + 1) / 2
	}
	return out
}
