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
	m := g.matrix()
	n := len(m.ids)
	ranks := make(map[string]float64, n)
	if n == 0 {
		return ranks
	}
	rank, next := make([]float64, n), make([]float64, n)
	for i := range rank {
		rank[i] = 1 / float64(n)
	}
	for range maxIterations {
		var dangling float64
		for _, i := range m.dangling {
			dangling += rank[i]
		}
		base := (1-damping)/float64(n) + damping*dangling/float64(n)
		var change float64
		for v := range next {
			var sum float64
			for e := m.start[v]; e < m.start[v+1]; e++ {
				sum += rank[m.from[e]] * m.share[e]
			}
			next[v] = base + damping*sum
			change += math.Abs(next[v] - rank[v])
		}
		rank, next = next, rank
		if change < tolerance {
			break
		}
	}
	for i, id := range m.ids {
		ranks[id] = rank[i]
	}
	return ranks
}

// matrix holds the incoming edges in compressed sparse rows: the edges into node v are
// start[v] to start[v+1], each with its share of the weight out of its source.
type matrix struct {
	ids      []string // sorted
	start    []int32
	from     []int32
	share    []float64
	dangling []int32
}

func (g *Graph) matrix() matrix {
	ids := g.Nodes()
	at := make([]int32, len(g.ids)) // position in the graph -> row
	for row, id := range ids {
		at[g.index[id]] = int32(row)
	}
	m := matrix{ids: ids, start: make([]int32, len(ids)+1),
		from: make([]int32, 0, g.edges), share: make([]float64, 0, g.edges)}
	total := make([]float64, len(ids))
	for row, id := range ids {
		for _, h := range g.out[g.index[id]] {
			total[row] += h.weight()
		}
		if total[row] == 0 {
			m.dangling = append(m.dangling, int32(row))
		}
	}
	for row, id := range ids {
		for _, h := range g.in[g.index[id]] {
			m.from = append(m.from, at[h.node])
			m.share = append(m.share, h.weight()/total[at[h.node]])
		}
		m.start[row+1] = int32(len(m.from))
	}
	return m
}

// personalized returns the k nodes with the highest PageRank from the seeds, including
// the seeds. The walk jumps back to a seed instead of any node, so nodes near the seeds
// rank high. The rank of a node without outgoing edges returns to the seeds. Unknown
// seeds are ignored.
//
// The ranks are a local approximation by forward push: each node has an estimate p and a
// residue r, and while some r(u) > ε·deg(u), node u adds (1−d)·r(u) to its estimate and
// pushes d·r(u) along its edges by weight. Estimates do not exceed the exact values. At
// most 1/(ε·(1−d)) edges are pushed, independent of the size of the graph. Andersen,
// Chung and Lang, "Local Graph Partitioning using PageRank Vectors", FOCS 2006, section 3.
func (g *Graph) personalized(seeds []string, k int, damping float64) []Scored {
	const epsilon = 1e-4
	var start []int32
	for _, s := range seeds {
		if n, ok := g.index[s]; ok && !slices.Contains(start, n) {
			start = append(start, n)
		}
	}
	if len(start) == 0 || k <= 0 {
		return nil
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
	ranked := make([]Scored, 0, len(p))
	for n, score := range p {
		ranked = append(ranked, Scored{g.ids[n], score})
	}
	slices.SortFunc(ranked, byScore)
	return ranked[:min(k, len(ranked))]
}
