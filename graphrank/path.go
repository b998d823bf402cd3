package graphrank

import (
	"container/heap"
	"slices"
)

// Path is a directed path, including both ends.
type Path struct {
	Nodes []string
	// Weights holds the weights of the edges, one fewer than the nodes.
	Weights []float64
	// Cost is Σ 1/max(weight, 0.1).
	Cost float64
}

// Hops returns the number of edges.
func (p Path) Hops() int { return len(p.Weights) }

// HopConfidence returns the confidence in a relation over a number of edges: 0.95, 0.80
// and 0.65 for one, two and three, 0.50 for more, and 0 for none.
func HopConfidence(hops int) float64 {
	switch {
	case hops <= 0:
		return 0
	case hops == 1:
		return 0.95
	case hops == 2:
		return 0.80
	case hops == 3:
		return 0.65
	}
	return 0.50
}

// ShortestPath returns the cheapest directed path of at most maxHops edges, where an
// edge costs 1/max(weight, 0.1). Ties go to the path with fewer edges, then to the path
// with the smaller id at the last node in which they differ. ok is false if there is no
// path, if an end is unknown, or if both ends are the same node.
//
// The algorithm is Dijkstra's ("A note on two problems in connexion with graphs",
// Numerische Mathematik 1, 1959) over states (node, number of edges). With plain nodes as
// states, the bound on edges would hide a path that costs more but has fewer edges.
func (g *Graph) ShortestPath(from, to string, maxHops int) (p Path, ok bool) {
	f, ok1 := g.index[from]
	t, ok2 := g.index[to]
	if !ok1 || !ok2 || f == t || maxHops <= 0 {
		return Path{}, false
	}
	maxHops = min(maxHops, g.Len()-1)
	type arrival struct {
		cost float64
		prev state
	}
	best := map[state]arrival{{f, 0}: {}}
	done := make(map[state]bool)
	q := &frontier{g: g, states: []visit{{state: state{f, 0}}}}
	for q.Len() > 0 {
		v := heap.Pop(q).(visit)
		if done[v.state] {
			continue
		}
		done[v.state] = true
		if v.node == t {
			return g.trace(v.state, func(s state) state { return best[s].prev }, v.cost), true
		}
		if int(v.hops) == maxHops {
			continue
		}
		for _, h := range g.out[v.node] {
			s := state{h.node, v.hops + 1}
			cost := v.cost + 1/max(h.weight(), 0.1)
			old, seen := best[s]
			if !seen || cost < old.cost || cost == old.cost && g.ids[v.node] < g.ids[old.prev.node] {
				best[s] = arrival{cost, v.state}
				heap.Push(q, visit{s, cost})
			}
		}
	}
	return Path{}, false
}

func (g *Graph) trace(end state, prev func(state) state, cost float64) Path {
	p := Path{Cost: cost}
	for s := end; ; s = prev(s) {
		p.Nodes = append(p.Nodes, g.ids[s.node])
		if s.hops == 0 {
			break
		}
		i, _ := g.find(g.out[prev(s).node], s.node)
		p.Weights = append(p.Weights, g.out[prev(s).node][i].weight())
	}
	slices.Reverse(p.Nodes)
	slices.Reverse(p.Weights)
	return p
}

// state is a node reached over a number of edges.
type state struct {
	node, hops int32
}

type visit struct {
	state
	cost float64
}

// frontier is a heap of visits: cheapest first, then fewest edges, then by id.
type frontier struct {
	g      *Graph
	states []visit
}

func (q *frontier) Len() int      { return len(q.states) }
func (q *frontier) Swap(i, j int) { q.states[i], q.states[j] = q.states[j], q.states[i] }
func (q *frontier) Push(x any)    { q.states = append(q.states, x.(visit)) }
func (q *frontier) Pop() any {
	last := q.states[len(q.states)-1]
	q.states = q.states[:len(q.states)-1]
	return last
}
func (q *frontier) Less(i, j int) bool {
	a, b := q.states[i], q.states[j]
	if a.cost != b.cost {
		return a.cost < b.cost
	}
	if a.hops != b.hops {
		return a.hops < b.hops
	}
	return q.g.ids[a.node] < q.g.ids[b.node]
}
