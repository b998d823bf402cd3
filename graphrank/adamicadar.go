package graphrank

import (
	"cmp"
	"math"
	"slices"
)

// AdamicAdar measures the similarity of two nodes by the neighbours they share, where
// neighbours with few edges count more:
//
//	AA(u,v) = Σ_{w ∈ N(u)∩N(v), deg(w)>1} 1/ln(deg(w))
//
// N is the set of neighbours in either direction, deg the number of edges in
// and out. AdamicAdar returns 0 for an unknown node. Adamic and Adar, "Friends and
// neighbors on the Web", Social Networks 25 (2003), equation in section 3.
func (g *Graph) AdamicAdar(u, v string) float64 {
	a, ok1 := g.index[u]
	b, ok2 := g.index[v]
	if !ok1 || !ok2 || a == b {
		return 0
	}
	near := g.neighbours(b)
	var sum float64
	for _, h := range g.neighbours(a) {
		if _, shared := g.find(near, h.node); shared {
			sum += g.rarity(h.node)
		}
	}
	return sum
}

// rarity returns the term 1/ln(deg) of a shared neighbour, 0 for degree 1 or less.
func (g *Graph) rarity(w int32) float64 {
	if d := len(g.out[w]) + len(g.in[w]); d > 1 {
		return 1 / math.Log(float64(d))
	}
	return 0
}

// neighbours returns an edge for each neighbour of a node in either direction, sorted by id.
// If a neighbour has edges in both directions, it is the one with the larger weight.
func (g *Graph) neighbours(n int32) []half {
	out, in := g.out[n], g.in[n]
	merged := make([]half, 0, len(out)+len(in))
	for len(out) > 0 && len(in) > 0 {
		switch a, b := out[0], in[0]; {
		case a.node == b.node:
			if b.weight() > a.weight() {
				a = b
			}
			merged, out, in = append(merged, a), out[1:], in[1:]
		case g.ids[a.node] < g.ids[b.node]:
			merged, out = append(merged, a), out[1:]
		default:
			merged, in = append(merged, b), in[1:]
		}
	}
	return append(append(merged, out...), in...)
}

// Relatedness returns how closely id is related to the context, in [0, 1]: 1 if an edge
// in either direction connects it with a context node, otherwise
// min(max over the context of AA / 2, 1). It is 0 for a node of the context, an unknown
// node or an empty context.
func (g *Graph) Relatedness(id string, context []string) float64 {
	if !g.Has(id) || slices.Contains(context, id) {
		return 0
	}
	var best float64
	for _, c := range context {
		if _, ok := g.Edge(id, c); ok {
			return 1
		}
		if _, ok := g.Edge(c, id); ok {
			return 1
		}
		best = max(best, g.AdamicAdar(id, c))
	}
	return min(best/2, 1)
}

// MaxHub bounds the work of Related, which ignores a shared neighbour with more edges.
// Such a neighbour would add at most 1/ln(MaxHub) = 0.145 to a score.
const MaxHub = 1000

// Related returns the k nodes with the highest Relatedness to id, best first: its
// neighbours (1.0, ordered by the weight of the edge), then their neighbours by
// Adamic-Adar.
func (g *Graph) Related(id string, k int) []Scored {
	n, ok := g.index[id]
	if !ok || k <= 0 {
		return nil
	}
	near := g.neighbours(n)
	direct := make([]Scored, 0, len(near))
	for _, h := range slices.SortedStableFunc(slices.Values(near), func(a, b half) int { return cmp.Compare(b.weight(), a.weight()) }) {
		direct = append(direct, Scored{g.ids[h.node], 1})
	}
	if len(direct) >= k {
		return direct[:k]
	}
	sums := make(map[int32]float64)
	for _, w := range near { // sorted, so that sums are deterministic
		if len(g.out[w.node])+len(g.in[w.node]) > MaxHub {
			continue
		}
		r := g.rarity(w.node)
		for _, v := range g.neighbours(w.node) {
			if v.node != n {
				sums[v.node] += r
			}
		}
	}
	for _, w := range near {
		delete(sums, w.node)
	}
	shared := make([]Scored, 0, len(sums))
	for v, s := range sums {
		if s > 0 {
			shared = append(shared, Scored{g.ids[v], min(s/2, 1)})
		}
	}
	slices.SortFunc(shared, byScore)
	return append(direct, shared[:min(len(shared), k-len(direct))]...)
}
