package graphrank

import "slices"

// Path is a directed path, including both ends.
type Path struct {
	Nodes []string
	// Cost is Σ 1/max(weight, 0.1).
	Cost float64
}

// Hops returns the number of edges.
func (p Path) Hops() int { return max(0, len(p.Nodes)-1) }

// confidences holds the confidences in relations over 0, 1, 2, 3 and more edges.
var confidences = [...]float64{0, 0.95, 0.80, 0.65, 0.50}

// HopConfidence returns the confidence in a relation over a number of edges: 0.95, 0.80
// and 0.65 for one, two and three, 0.50 for more, and 0 for none.
func HopConfidence(hops int) float64 {
	return confidences[min(max(hops, 0), len(confidences)-1)]
}

// ShortestPath returns the cheapest directed path of at most maxHops edges, where an
// edge costs 1/max(weight, 0.1). Ties go to the path with fewer edges, then to the path
// with the smaller id at the last node in which they differ. ok is false if there is no
// path, if an end is unknown, or if both ends are the same node.
//
// The algorithm is Bellman's ("On a routing problem", Quarterly of Applied Mathematics 16,
// 1958): it extends the cheapest paths of each number of edges by one edge. It drops a path if
// one with fewer edges leads to the same node or to the end at no higher cost.
func (g *Graph) ShortestPath(from, to string, maxHops int) (p Path, ok bool) {
	f, ok1 := g.index[from]
	t, ok2 := g.index[to]
	if !ok1 || !ok2 || f == t || maxHops <= 0 {
		return Path{}, false
	}
	type arrival struct {
		cost float64
		prev int32 // the node before
	}
	layers := []map[int32]arrival{{f: {}}} // by number of edges
	least := map[int32]float64{f: 0}       // by node, over all layers
	hops := 0                              // of the best path so far
	for n := 1; n <= maxHops && len(layers[n-1]) > 0; n++ {
		layer := map[int32]arrival{}
		for node, at := range layers[n-1] {
			for _, h := range g.out[node] {
				cost := at.cost + 1/max(h.weight(), 0.1)
				if isDearer(least, h.node, cost) || isDearer(least, t, cost) {
					continue
				}
				old, seen := layer[h.node]
				if !seen || cost < old.cost || cost == old.cost && g.ids[node] < g.ids[old.prev] {
					layer[h.node] = arrival{cost, node}
				}
			}
		}
		for node, at := range layer {
			least[node] = at.cost
		}
		if _, ok := layer[t]; ok {
			hops = n
		}
		layers = append(layers, layer)
	}
	if hops == 0 {
		return Path{}, false
	}
	p.Cost = least[t]
	for node := t; hops >= 0; hops-- {
		p.Nodes = append(p.Nodes, g.ids[node])
		node = layers[hops][node].prev
	}
	slices.Reverse(p.Nodes)
	return p, true
}

// isDearer reports whether a path to a node is known that costs at most cost.
func isDearer(least map[int32]float64, node int32, cost float64) bool {
	known, ok := least[node]
	return ok && known <= cost
}
