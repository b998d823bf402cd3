package graphrank

// Density returns the share of possible directed edges that exist, E / (N·(N−1)), in
// [0, 1]. It is 0 for fewer than two nodes.
func (g *Graph) Density() float64 {
	n := float64(g.Len())
	if n < 2 {
		return 0
	}
	return float64(g.edges) / (n * (n - 1))
}

// Alpha returns the weight of the semantic score in a blend with graph relatedness:
// max(0.5, 1 − 2·density), or 1 for at most one node. A denser graph has more weight,
// up to half.
func (g *Graph) Alpha() float64 {
	if g.Len() <= 1 {
		return 1
	}
	return max(0.5, 1-2*g.Density())
}
