package graphrank

import (
	"cmp"
	"maps"
	"slices"
)

// Communities divides the nodes into groups with more weight inside than between
// them, by the Louvain method on the undirected sum of weights. It moves each node to
// the neighbouring group with the highest gain in modularity until no move gains,
// contracts the groups to nodes, and repeats. The gain of node i in group C is
//
//	ΔQ = k_{i,C}/m − k_i·Σ_C/(2m²)
//
// where k_{i,C} is the weight between i and C, k_i the weight of all edges of i, Σ_C the
// sum of the degrees in C without i, and m the total weight. Nodes are visited in order of
// id, and ties go to the group with the smallest first id, so the result is deterministic.
// Groups are sorted by size, largest first, then by first id; ids within a group are
// sorted. Blondel, Guillaume, Lambiotte and Lefebvre, "Fast unfolding of communities in
// large networks", J. Stat. Mech. P10008 (2008), equation 2.
func (g *Graph) Communities() [][]string {
	ids, level := g.undirected()
	group := make([]int32, len(ids)) // node -> current super-node
	for i := range group {
		group[i] = int32(i)
	}
	for {
		next, moved := level.move()
		if !moved {
			break
		}
		for i, s := range group {
			group[i] = next[s]
		}
		level = level.contract(next)
	}
	members := make(map[int32][]string)
	for i, id := range ids { // sorted, so the members are, too
		members[group[i]] = append(members[group[i]], id)
	}
	groups := slices.Collect(maps.Values(members))
	slices.SortFunc(groups, func(a, b []string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a[0], b[0]))
	})
	return groups
}

type link struct {
	to     int32
	weight float64
}

// louvain is one level of the method: an undirected weighted graph. The weight inside a
// contracted group counts in the degree of its node, not in its adjacency.
type louvain struct {
	adjacent [][]link // sorted by to
	degree   []float64
	m        float64 // half the sum of degrees
}

func (g *Graph) undirected() ([]string, louvain) {
	ids := g.Nodes()
	at := make([]int32, len(g.ids))
	for row, id := range ids {
		at[g.index[id]] = int32(row)
	}
	l := louvain{adjacent: make([][]link, len(ids)), degree: make([]float64, len(ids))}
	for row, id := range ids {
		n := g.index[id]
		weight := make(map[int32]float64, len(g.out[n])+len(g.in[n]))
		for _, h := range slices.Concat(g.out[n], g.in[n]) {
			weight[at[h.node]] += h.weight()
		}
		for _, to := range slices.Sorted(maps.Keys(weight)) {
			l.adjacent[row] = append(l.adjacent[row], link{to, weight[to]})
			l.degree[row] += weight[to]
		}
		l.m += l.degree[row] / 2
	}
	return ids, l
}

// move assigns every node to a group, numbered 0, 1, … in order of first node.
func (l louvain) move() (group []int32, moved bool) {
	n := len(l.adjacent)
	group = make([]int32, n)
	sum := make([]float64, n) // degrees in each group
	for i := range group {
		group[i] = int32(i)
		sum[i] = l.degree[i]
	}
	if l.m == 0 {
		return group, false
	}
	const minGain = 1e-12 // a smaller gain in modularity is rounding noise
	near := make(map[int32]float64)
	for changed := true; changed; {
		changed = false
		for i := range n {
			clear(near)
			for _, e := range l.adjacent[i] {
				near[group[e.to]] += e.weight
			}
			own := group[i]
			sum[own] -= l.degree[i]
			gain := func(c int32) float64 {
				return near[c]/l.m - l.degree[i]*sum[c]/(2*l.m*l.m)
			}
			best, most := own, gain(own)
			for _, e := range l.adjacent[i] { // sorted by node: deterministic
				c := group[e.to]
				if d := gain(c); d > most+minGain || d > most-minGain && d >= most && c < best && best != own {
					best, most = c, d
				}
			}
			sum[best] += l.degree[i]
			if best != own {
				group[i] = best
				changed, moved = true, true
			}
		}
	}
	names := make(map[int32]int32)
	for i, c := range group {
		if _, ok := names[c]; !ok {
			names[c] = int32(len(names))
		}
		group[i] = names[c]
	}
	return group, moved
}

func (l louvain) contract(group []int32) louvain {
	n := int(slices.Max(group)) + 1
	next := louvain{adjacent: make([][]link, n), degree: make([]float64, n), m: l.m}
	between := make([]map[int32]float64, n)
	for i, c := range group {
		next.degree[c] += l.degree[i]
		if between[c] == nil {
			between[c] = make(map[int32]float64)
		}
		for _, e := range l.adjacent[i] {
			if group[e.to] != c {
				between[c][group[e.to]] += e.weight
			}
		}
	}
	for c, weights := range between {
		for _, to := range slices.Sorted(maps.Keys(weights)) {
			next.adjacent[c] = append(next.adjacent[c], link{to, weights[to]})
		}
	}
	return next
}
