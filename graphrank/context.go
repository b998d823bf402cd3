package graphrank

import "slices"

// Affinity returns how strongly each candidate belongs to the context, in [0, 1):
// the mean of its Relatedness and of its rank by PageRank from the context over
// the best such rank, reduced while the context was used little:
//
//	A(v) = n/(n+1) · ( Relatedness(v, C) + P(v)/max P ) / 2
//
// n is the count of all edges at the context C, and max P is over the nodes
// outside of it. A node of the context has 0, and so have all without a context
// that the graph knows.
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
