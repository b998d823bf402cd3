// Package graphrank measures how closely tools and documents are related, from a
// graph of what was used together. It does not store the graph: the caller
// persists edges and loads them with Set.
//
// Edges are directed, typed and weighted. Each file contains one algorithm:
// Adamic-Adar, PageRank, the affinity to a context (which combines both), density,
// shortest paths and communities.
//
// Any number of goroutines may read a Graph concurrently, but not while another one
// changes it. Every result is deterministic: it depends only on the edges, not on the
// order of calls or of a map.
package graphrank

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"
)

// Type is the meaning of an edge. From is the earlier or the outer end.
type Type uint8

// The edge types, with their factor of an edge's weight.
const (
	Sequence   Type = iota // To was used after From: 0.5
	Provides               // From's output fits To's input: 0.7
	Contains               // To is part of From: 0.8
	Dependency             // To needs From's result: 1.0
	CoChange               // To was changed together with From: the count of the edge
)

var typeNames = [...]string{"sequence", "provides", "contains", "dependency", "cochange"}
var typeWeights = [...]float64{0.5, 0.7, 0.8, 1.0, 1.0}

func (t Type) String() string { return typeNames[t] }

// Source is the evidence for an edge.
type Source uint8

// The sources, with their factor of an edge's weight.
const (
	Template Source = iota // predefined, never observed: 0.5
	Inferred               // observed once or twice, or derived from schemas: 0.7
	Observed               // observed at least ObservedAfter times: 1.0
)

var sourceNames = [...]string{"template", "inferred", "observed"}
var sourceWeights = [...]float64{0.5, 0.7, 1.0}

func (s Source) String() string { return sourceNames[s] }

// ObservedAfter is the count at which an edge gets the source Observed.
const ObservedAfter = 3

// MinCount is the count below which a decayed edge is dropped. A single observation
// lasts a little more than three half-lives.
const MinCount = 0.1

// Edge is a directed relation.
type Edge struct {
	From, To string
	Type     Type
	Source   Source
	// Count is the number of observations, reduced by decay.
	Count float64
}

// Weight returns the product of the factors of type and source, in (0, 1], times the count
// if the type is CoChange.
func (e Edge) Weight() float64 { return half{typ: e.Type, source: e.Source, count: e.Count}.weight() }

// half is an edge as stored at one of its ends.
type half struct {
	node   int32
	typ    Type
	source Source
	count  float64
}

func (h half) weight() float64 {
	w := typeWeights[h.typ] * sourceWeights[h.source]
	if h.typ == CoChange {
		w *= h.count
	}
	return w
}

// Graph is a directed graph without self-loops and with at most one edge from
// one node to another. The zero Graph is empty and ready to use.
type Graph struct {
	index map[string]int32 // id -> position
	ids   []string
	out   [][]half // sorted by id of the other end
	in    [][]half
	edges int
}

// Len returns the number of nodes.
func (g *Graph) Len() int { return len(g.ids) }

// EdgeCount returns the number of edges.
func (g *Graph) EdgeCount() int { return g.edges }

// Has reports whether the graph contains the node.
func (g *Graph) Has(id string) bool { _, ok := g.index[id]; return ok }

// Nodes returns all ids, sorted.
func (g *Graph) Nodes() []string {
	ids := slices.Clone(g.ids)
	slices.Sort(ids)
	return ids
}

// AddNode adds a node without edges. It ignores "" and ids that the graph contains.
func (g *Graph) AddNode(id string) {
	if id != "" {
		g.node(id)
	}
}

func (g *Graph) node(id string) int32 {
	if i, ok := g.index[id]; ok {
		return i
	}
	if g.index == nil {
		g.index = make(map[string]int32)
	}
	i := int32(len(g.ids))
	g.index[id] = i
	g.ids = append(g.ids, id)
	g.out = append(g.out, nil)
	g.in = append(g.in, nil)
	return i
}

// find returns the position in list of the edge to or from node, or the position at
// which to insert it.
func (g *Graph) find(list []half, node int32) (int, bool) {
	return slices.BinarySearchFunc(list, node, func(h half, n int32) int {
		if h.node == n {
			return 0
		}
		return cmp.Compare(g.ids[h.node], g.ids[n])
	})
}

func (g *Graph) put(list []half, h half) []half {
	i, ok := g.find(list, h.node)
	if ok {
		list[i] = h
		return list
	}
	return slices.Insert(list, i, h)
}

// Edge returns the edge from one node to another.
func (g *Graph) Edge(from, to string) (Edge, bool) {
	f, ok1 := g.index[from]
	t, ok2 := g.index[to]
	if !ok1 || !ok2 {
		return Edge{}, false
	}
	i, ok := g.find(g.out[f], t)
	if !ok {
		return Edge{}, false
	}
	h := g.out[f][i]
	return Edge{From: from, To: to, Type: h.typ, Source: h.source, Count: h.count}, true
}

// Set adds e, or replaces the edge between the same ends by e. It ignores self-loops
// and empty ends.
func (g *Graph) Set(e Edge) {
	if e.From == e.To || e.From == "" || e.To == "" {
		return
	}
	f, t := g.node(e.From), g.node(e.To)
	if _, ok := g.find(g.out[f], t); !ok {
		g.edges++
	}
	g.out[f] = g.put(g.out[f], half{t, e.Type, e.Source, e.Count})
	g.in[t] = g.put(g.in[t], half{f, e.Type, e.Source, e.Count})
}

// Observe counts one observation of the relation, sets its type to t, and returns the
// changed edge. Its source is Inferred at first, and Observed from the third observation
// on. For a self-loop, Observe does nothing and returns the zero Edge.
func (g *Graph) Observe(from, to string, t Type) Edge {
	if from == to || from == "" || to == "" {
		return Edge{}
	}
	e, ok := g.Edge(from, to)
	if !ok || e.Source == Template {
		e = Edge{From: from, To: to, Source: Inferred, Count: e.Count}
	}
	e.Type = t
	e.Count++
	if e.Count >= ObservedAfter {
		e.Source = Observed
	}
	g.Set(e)
	return e
}

// HalfLifeFactor returns the factor by which a count decays in the time elapsed,
// 2^(-elapsed/halfLife). Both times have the same unit.
func HalfLifeFactor(elapsed, halfLife float64) float64 {
	if halfLife <= 0 || elapsed <= 0 {
		return 1
	}
	return math.Exp2(-elapsed / halfLife)
}

// Edges yields every edge, sorted by From, then To.
func (g *Graph) Edges() iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		for _, id := range g.Nodes() {
			for e := range g.Out(id) {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Out yields the edges that leave id, sorted by To.
func (g *Graph) Out(id string) iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		n, ok := g.index[id]
		if !ok {
			return
		}
		for _, h := range g.out[n] {
			if !yield(Edge{id, g.ids[h.node], h.typ, h.source, h.count}) {
				return
			}
		}
	}
}

// In yields the edges that reach id, sorted by From.
func (g *Graph) In(id string) iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		n, ok := g.index[id]
		if !ok {
			return
		}
		for _, h := range g.in[n] {
			if !yield(Edge{g.ids[h.node], id, h.typ, h.source, h.count}) {
				return
			}
		}
	}
}

// Scored is a node with a score; larger is better.
type Scored struct {
	ID    string
	Score float64
}

// byScore orders best first, ties by id.
func byScore(a, b Scored) int {
	if c := cmp.Compare(b.Score, a.Score); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

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

// DocumentPrefix is the prefix of the IDs of documents. No ID of a tool has it.
const DocumentPrefix = "doc:"

// DocumentID returns the ID of the document at a workspace path.
func DocumentID(path string) string { return DocumentPrefix + path }

// DocumentPath returns the path of the document with an ID. ok is false for a tool.
func DocumentPath(id string) (path string, ok bool) { return strings.CutPrefix(id, DocumentPrefix) }
