package taskdag

import (
	"slices"
	"strings"
)

// CycleError reports a cycle of dependencies. Path is closed: its first and last ID are the
// same.
type CycleError struct{ Path []string }

func (e *CycleError) Error() string { return "Cycle: " + strings.Join(e.Path, " -> ") }

// maxCycleWork is the number of edges visited after which Cycle stops.
const maxCycleWork = 2_000_000

// Cycle returns the shortest cycle, nil if there is none. Of several it returns the one
// whose IDs sort first. The path follows the dependencies ("a needs b needs a"), starts at
// its smallest ID and is closed. The search starts from the smallest IDs. After maxCycleWork
// edges it stops and returns the shortest cycle found so far.
func (g *Graph) Cycle() *CycleError {
	s := newSearch(g, make([][]int, len(g.tasks)))
	left := g.cyclic()
	s.removed = left.removed
	var cyclic []int
	for i := range g.tasks {
		if !s.removed[i] {
			cyclic = append(cyclic, i)
		}
	}
	byID := func(a, b int) int { return strings.Compare(g.tasks[a].ID, g.tasks[b].ID) }
	slices.SortFunc(cyclic, byID)
	for _, i := range cyclic {
		s.next[i] = slices.SortedFunc(slices.Values(g.deps[i]), byID)
	}
	var best []string
	for _, start := range cyclic {
		if s.removed[start] {
			continue
		}
		// The path starts at its smallest ID, since the starts are sorted.
		if path := s.shortest(start, start, len(best)); path != nil {
			best = path
		}
		if best != nil && s.visited > maxCycleWork {
			break
		}
		// The search has found the shortest cycle through start, so it continues without
		// start. This removes a single ring completely.
		left.remove(start)
	}
	if best == nil {
		return nil
	}
	return &CycleError{Path: best}
}

// Path returns the shortest chain of dependencies from one task to another, both included.
// It returns nil if there is none or a task is unknown.
func (g *Graph) Path(from, to string) []string {
	i, known := g.index[from]
	j, ok := g.index[to]
	if !known || !ok {
		return nil
	}
	return newSearch(g, g.deps).shortest(i, j, 0)
}

// search finds shortest paths by breadth-first search. It reuses its arrays.
type search struct {
	g       *Graph
	next    [][]int // the edges to follow
	removed []bool  // tasks to skip; nil for none
	round   int
	seen    []int // the round in which each task was last reached
	depth   []int // the number of tasks on the path to each task, both ends included
	parent  []int
	queue   []int
	visited int // edges followed so far
}

func newSearch(g *Graph, next [][]int) *search {
	n := len(g.tasks)
	return &search{g: g, next: next, seen: make([]int, n), depth: make([]int, n), parent: make([]int, n)}
}

// shortest returns the IDs on the shortest path of at least one edge from one task to
// another, both included. It returns nil if no path has fewer than limit IDs; 0 means no
// limit.
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
				return s.path(from, i, to)
			}
			if s.seen[d] != s.round && (s.removed == nil || !s.removed[d]) {
				s.seen[d], s.depth[d], s.parent[d] = s.round, s.depth[i]+1, i
				s.queue = append(s.queue, d)
			}
		}
	}
	return nil
}

// path returns the IDs on the path from one task to another; last is the predecessor of
// to.
func (s *search) path(from, last, to int) []string {
	path := []string{s.g.tasks[to].ID, s.g.tasks[last].ID}
	for at := last; at != from; {
		at = s.parent[at]
		path = append(path, s.g.tasks[at].ID)
	}
	slices.Reverse(path)
	return path
}

// pruned is the part of a graph that is on cycles or between two cycles.
type pruned struct {
	g       *Graph
	removed []bool
	in, out []int // the remaining dependencies and dependents of each task
}

// cyclic repeatedly removes the tasks without dependencies or without dependents.
func (g *Graph) cyclic() *pruned {
	n := len(g.tasks)
	r := &pruned{g: g, removed: make([]bool, n), in: make([]int, n), out: make([]int, n)}
	for i := range g.tasks {
		r.in[i], r.out[i] = len(g.deps[i]), len(g.dependents[i])
	}
	for i := range g.tasks {
		if !r.removed[i] && (r.in[i] == 0 || r.out[i] == 0) {
			r.remove(i)
		}
	}
	return r
}

// remove removes a task and the tasks that then have no dependencies or no dependents.
func (r *pruned) remove(i int) {
	r.removed[i] = true
	queue := []int{i}
	for k := 0; k < len(queue); k++ {
		take := func(list, count []int) {
			for _, j := range list {
				if count[j]--; count[j] == 0 && !r.removed[j] {
					r.removed[j] = true
					queue = append(queue, j)
				}
			}
		}
		take(r.g.dependents[queue[k]], r.in)
		take(r.g.deps[queue[k]], r.out)
	}
}
