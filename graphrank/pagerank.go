package graphrank

import (
	"cmp"
	"math"
	"slices"
)

// damping is the share of rank that follows edges. It is a variable because the last
// digit of 1-damping, and so of recorded ranks, differs for a constant.
var damping = 0.85

// The bounds of PageRank.
const (
	tolerance     = 1e-9 // the iteration stops when the L1 change is smaller
	maxIterations = 200
)

// PageRank returns the stationary distribution of a random walk that follows an edge
// with probability d, chosen by weight, and otherwise jumps to any node:
//
//	r(v) = (1−d)/N + d·( Σ_{u→v} r(u)·w(u,v)/W(u) + D/N )
//
// W(u) is the weight of all edges out of u, and D the total rank of the nodes without
// such edges. The ranks sum to 1. The iteration starts from equal ranks and visits nodes
// in order of id, so equal graphs give bit-identical ranks. Page, Brin, Motwani and
// Winograd, "The PageRank Citation Ranking", Stanford 1999, section 2.6;
// dangling nodes as in Langville and Meyer, "Deeper Inside PageRank", 2004, 3.1.
func (g *Graph) PageRank() map[string]float64 {
	n := float64(g.Len())
	order := make([]int32, 0, g.Len()) // by id
	total := make([]float64, g.Len())  // weights of the edges out of each node
	var dangling []int32
	for _, id := range g.Nodes() {
		node := g.index[id]
		order = append(order, node)
		for _, h := range g.out[node] {
			total[node] += h.weight()
		}
		if total[node] == 0 {
			dangling = append(dangling, node)
		}
	}
	shares := make([][]float64, g.Len()) // of each edge in g.in, of the weight out of its source
	rank, next := make([]float64, g.Len()), make([]float64, g.Len())
	for node, edges := range g.in {
		rank[node] = 1 / n
		for _, h := range edges {
			shares[node] = append(shares[node], h.weight()/total[h.node])
		}
	}
	for range maxIterations {
		var lost float64
		for _, node := range dangling {
			lost += rank[node]
		}
		base := (1-damping)/n + damping*lost/n
		var change float64
		for _, node := range order {
			var sum float64
			for e, h := range g.in[node] {
				sum += rank[h.node] * shares[node][e]
			}
			next[node] = base + damping*sum
			change += math.Abs(next[node] - rank[node])
		}
		rank, next = next, rank
		if change < tolerance {
			break
		}
	}
	ranks := make(map[string]float64, len(rank))
	for node, id := range g.ids {
		ranks[id] = rank[node]
	}
	return ranks
}

// personalized returns the PageRank from the seeds of the nodes near them, including the
// seeds. The walk jumps back to a seed instead of any node, so nodes near the seeds rank
// high. The rank of a node without outgoing edges returns to the seeds. Unknown seeds are
// ignored.
//
// The ranks are a local approximation by forward push: each node has an estimate p and a
// residue r, and while some r(u) > ε·deg(u), node u adds (1−d)·r(u) to its estimate and
// pushes d·r(u) along its edges by weight. Estimates do not exceed the exact values. At
// most 1/(ε·(1−d)) edges are pushed, independent of the size of the graph. Andersen,
// Chung and Lang, "Local Graph Partitioning using PageRank Vectors", FOCS 2006, section 3.
func (g *Graph) personalized(seeds []string, damping float64) map[string]float64 {
	const epsilon = 1e-4
	var start []int32
	for _, s := range seeds {
		if n, ok := g.index[s]; ok && !slices.Contains(start, n) {
			start = append(start, n)
		}
	}
	slices.SortFunc(start, func(a, b int32) int { return cmp.Compare(g.ids[a], g.ids[b]) })
	p, r := make(map[int32]float64), make(map[int32]float64)
	queued := make(map[int32]bool)
	var queue []int32
	add := func(n int32, mass float64) {
		r[n] += mass
		if !queued[n] && r[n] > epsilon*float64(max(1, len(g.out[n]))) {
			queued[n] = true
			queue = append(queue, n)
		}
	}
	for _, n := range start {
		add(n, 1/float64(len(start)))
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		queued[n] = false
		mass := r[n]
		r[n] = 0
		p[n] += (1 - damping) * mass
		var total float64
		for _, h := range g.out[n] {
			total += h.weight()
		}
		if total == 0 {
			for _, s := range start {
				add(s, damping*mass/float64(len(start)))
			}
			continue
		}
		for _, h := range g.out[n] {
			add(h.node, damping*mass*h.weight()/total)
		}
	}
	ranks := make(map[string]float64, len(p))
	for n, rank := range p {
		ranks[g.ids[n]] = rank
	}
	return ranks
}
