package graphrank

import "math"

// Density is E / (N·(N−1)), the share of possible directed edges that exist,
// in [0, 1]; 0 for fewer than two nodes.
func (g *Graph) Density() float64 {
	n := float64(g.Len())
	if n < 2 {
		return 0
	}
	return float64(g.edges) / (n * (n - 1))
}

// Alpha is the share of the semantic score in a blend with graph relatedness:
// max(0.5, 1 − 2·density), and 1 when there is at most one node. The denser the
// graph, the more weight it has, up to half.
func (g *Graph) Alpha() float64 {
	if g.Len() <= 1 {
		return 1
	}
	return math.Max(0.5, 1-2*g.Density())
}
