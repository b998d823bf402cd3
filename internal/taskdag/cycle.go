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

// Cycle returns the shortest cycle, nil if there is none; of several, the one
// whose IDs sort first. The path follows the dependencies ("a needs b needs a"),
// starts at its smallest ID and is closed. The search starts from the smallest
// IDs and stops after two million edges with the shortest cycle found.
func (g *Graph) Cycle() *CycleError {
	left := g.cyclic()
	if left.count == 0 {
		return nil
	}
	var cyclic []int
	for i := range g.tasks {
		if !left.removed[i] {
			cyclic = append(cyclic, i)
		}
	}
	byID := func(a, b int) int { return strings.Compare(g.tasks[a].ID, g.tasks[b].ID) }
	slices.SortFunc(cyclic, byID)
	sorted := make([][]int, len(g.tasks))
	for _, i := range cyclic {
		sorted[i] = slices.SortedFunc(slices.Values(g.deps[i]), byID)
	}
	s := newSearch(g, sorted)
	s.removed = left.removed
	var best []string
	for _, start := range cyclic {
		if left.removed[start] {
			continue
		}
		path := s.shortest(start, start, len(best))
		if path != nil && (best == nil || len(path) < len(best)) {
			best = path // starts at its smallest ID, since the starts are sorted
		}
		if best != nil && s.visited > maxCycleWork {
			break
		}
		// The shortest cycle through start is known. The search goes on without
		// start; a single ring is empty then.
		left.remove(start)
	}
	if best == nil {
		return nil
	}
	return &CycleError{Path: rotate(best)}
}

// Path returns the shortest chain of dependencies from one task to another,
// both included, nil when there is none or a task is unknown.
func (g *Graph) Path(from, to string) []string {
	i, known := g.index[from]
	j, ok := g.index[to]
	if !known || !ok {
		return nil
	}
	return newSearch(g, g.deps).shortest(i, j, 0)
}

// rotate turns a closed path so that its smallest id comes first.
func rotate(closed []string) []string {
	ring := closed[:len(closed)-1]
	at := slices.Index(ring, slices.Min(ring))
	turned := append(slices.Clone(ring[at:]), ring[:at]...)
	return append(turned, turned[0])
}

// search finds shortest paths breadth first; it reuses its arrays.
type search struct {
	g       *Graph
	next    [][]int // the edges to follow
	removed []bool  // tasks to skip; nil for none
	round   int
	seen    []int // the round a task was reached in
	depth   []int // tasks on the path to a task, both ends included
	parent  []int
	queue   []int
	visited int // edges followed so far
}

func newSearch(g *Graph, next [][]int) *search {
	n := len(g.tasks)
	return &search{g: g, next: next, seen: make([]int, n), depth: make([]int, n), parent: make([]int, n)}
}

// shortest returns the shortest path of at least one edge from one task to
// another, as IDs with both ends; nil if none has fewer than limit IDs (0: no limit).
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

// path returns the IDs from one task to another, whose predecessor is last.
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
	in, out []int // dependencies and dependents of each task that are left
	count   int
}

// cyclic removes tasks without dependencies and tasks without dependents until
// none are left.
func (g *Graph) cyclic() *pruned {
	n := len(g.tasks)
	r := &pruned{g: g, removed: make([]bool, n), in: make([]int, n), out: make([]int, n), count: n}
	for i := range g.tasks {
		r.in[i], r.out[i] = len(g.deps[i]), len(g.dependents[i])
	}
	var ends []int
	for i := range g.tasks {
		if r.in[i] == 0 || r.out[i] == 0 {
			ends = append(ends, i)
		}
	}
	for _, i := range ends {
		r.remove(i)
	}
	return r
}

// remove removes a task, and the tasks that are on no cycle without it.
func (r *pruned) remove(i int) {
	if r.removed[i] {
		return
	}
	r.removed[i] = true
	queue := []int{i}
	for k := 0; k < len(queue); k++ {
		r.count--
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
