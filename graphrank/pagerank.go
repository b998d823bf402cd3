package graphrank

import (
	"cmp"
	"math"
	"slices"
)

// damping is the share of rank that follows edges. As a constant it would give the last
// digit of 1-damping, and of recorded ranks, another value.
var damping = 0.85

// The bounds of PageRank.
const (
	tolerance     = 1e-9 // it stops when the L1 change falls below
	maxIterations = 200
)

// PageRank is the stationary distribution of a random walk that follows edges by
// their weight with probability d and else jumps to any node:
//
//	r(v) = (1−d)/N + d·( Σ_{u→v} r(u)·w(u,v)/W(u) + D/N )
//
// W(u) is the weight of all edges out of u, D the rank of the nodes that have
// none. The ranks sum to 1. It starts uniform, visits nodes in order of id and
// is bounded, so equal graphs give equal bits. Page, Brin, Motwani and
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

// matrix is the graph by incoming edges in compressed rows: the edges into node
// v are start[v] to start[v+1], each with the share of its source's weight.
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

// Personalized is PageRank from the seeds: the walk jumps back to a seed, not to
// any node, so that nodes near the seeds rank high. It is the local
// approximation by forward push: every node keeps an estimate p and a residue r,
// and while some r(u) > ε·deg(u) node u keeps (1−d)·r(u) and pushes d·r(u) along
// its edges by weight. Estimates are never above the exact values. The work is at
// most 1/(ε·(1−d)) pushed edges, whatever the size of the graph. Rank on a node
// without edges out returns to the seeds. Unknown seeds are ignored. The k best
// are returned, seeds included. Andersen, Chung and Lang, "Local Graph Partitioning using
// PageRank Vectors", FOCS 2006, section 3.
func (g *Graph) Personalized(seeds []string, k int) []Scored {
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
