package taskdag

import (
	"slices"
	"strings"
)

// CycleError is a cycle of dependencies. Path is closed: its first and last id
// are the same.
type CycleError struct{ Path []string }

func (e *CycleError) Error() string { return "Cycle: " + strings.Join(e.Path, " -> ") }

// maxCycleWork bounds the edges visited in search of the shortest cycle.
const maxCycleWork = 2_000_000

// Cycle returns the shortest cycle, nil when there is none; of several, the one
// whose ids sort first. The path follows the dependencies ("a needs b needs a"),
// starts at its smallest id and is closed. In a graph so large that looking
// from every task would visit more than two million edges, it is the shortest
// found until then, looking from the smallest ids first.
func (g *Graph) Cycle() *CycleError {
	cyclic := g.cyclic()
	if len(cyclic) == 0 {
		return nil
	}
	byID := func(a, b int) int { return strings.Compare(g.tasks[a].ID, g.tasks[b].ID) }
	slices.SortFunc(cyclic, byID)
	sorted := make([][]int, len(g.tasks))
	for _, i := range cyclic {
		sorted[i] = slices.SortedFunc(slices.Values(g.deps[i]), byID)
	}
	s := newSearch(g, sorted)
	var best []string
	for _, start := range cyclic {
		path := s.shortest(start, start, len(best))
		if path != nil && (best == nil || len(path) < len(best)) {
			best = path // found from its smallest id, as starts are sorted
		}
		if best != nil && s.visited > maxCycleWork {
			break
		}
	}
	if best == nil {
		return nil
	}
	return &CycleError{Path: rotate(best)}
}

// rotate turns a closed path so that its smallest id comes first.
func rotate(closed []string) []string {
	ring := closed[:len(closed)-1]
	at := slices.Index(ring, slices.Min(ring))
	turned := append(slices.Clone(ring[at:]), ring[:at]...)
	return append(turned, turned[0])
}

// search finds shortest ways, breadth first; its arrays serve many starts.
type search struct {
	g       *Graph
	next    [][]int // the edges to follow
	round   int
	seen    []int // the round a task was reached in
	depth   []int // tasks on the way to it, both ends included
	parent  []int
	queue   []int
	visited int // edges followed so far
}

func newSearch(g *Graph, next [][]int) *search {
	n := len(g.tasks)
	return &search{g: g, next: next, seen: make([]int, n), depth: make([]int, n), parent: make([]int, n)}
}

// shortest is the shortest way of at least one edge from one task to another,
// as ids with both ends; nil when none has fewer than limit ids (0: no limit).
func (s *search) shortest(from, to, limit int) []string {
	s.round++
	s.queue = append(s.queue[:0], from)
	s.seen[from], s.depth[from] = s.round, 1
	for k := 0; k < len(s.queue); k++ {
		i := s.queue[k]
		if limit > 0 && s.depth[i]+1 >= limit {
			return nil
		}
		for _, d := range s.next[i] {
			s.visited++
			if d == to {
				path := []string{s.g.tasks[to].ID}
				for at := i; ; at = s.parent[at] {
					path = append(path, s.g.tasks[at].ID)
					if at == from {
						break
					}
				}
				slices.Reverse(path)
				return path
			}
			if s.seen[d] != s.round {
				s.seen[d], s.depth[d], s.parent[d] = s.round, s.depth[i]+1, i
				s.queue = append(s.queue, d)
			}
		}
	}
	return nil
}

// cyclic are the tasks on cycles or between two cycles: what is left when tasks
// without dependencies, and tasks without dependents, are taken away repeatedly.
func (g *Graph) cyclic() []int {
	gone := make([]bool, len(g.tasks))
	strip := func(in, out [][]int) {
		count := make([]int, len(g.tasks))
		var queue []int
		for i := range g.tasks {
			for _, d := range in[i] {
				if !gone[d] {
					count[i]++
				}
			}
			if count[i] == 0 && !gone[i] {
				queue = append(queue, i)
			}
		}
		for k := 0; k < len(queue); k++ {
			gone[queue[k]] = true
			for _, d := range out[queue[k]] {
				if count[d]--; count[d] == 0 && !gone[d] {
					queue = append(queue, d)
				}
			}
		}
	}
	strip(g.deps, g.dependents)
	strip(g.dependents, g.deps)
	var left []int
	for i := range g.tasks {
		if !gone[i] {
			left = append(left, i)
		}
	}
	return left
}
