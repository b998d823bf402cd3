// Package taskdag schedules tasks that depend on each other. It keeps no state, does no I/O
// and imports no other package of cairn.
//
// An edge runs from a dependency to its dependent, in the direction of work. All results
// are deterministic. "The given order" is the order in which the caller lists the tasks.
package taskdag

import (
	"fmt"
	"slices"
)

// State is the part of a task's status that scheduling needs.
type State uint8

// The states. Only a Completed task satisfies its dependents. Only a Pending task can be
// ready.
const (
	Pending    State = iota
	InProgress       // being worked on
	Blocked          // declared blocked by a person, whatever its dependencies
	Completed
	Failed
	Cancelled
)

// Task is a node.
type Task struct {
	ID        string
	State     State
	DependsOn []string // duplicates count once; IDs without a task are missing dependencies
	// Estimate is the expected work in hours, 0 if unknown.
	Estimate float64
}

// Graph is a set of tasks. It is immutable and safe for concurrent use.
type Graph struct {
	tasks      []Task
	index      map[string]int
	deps       [][]int    // existing dependencies of each task, in the given order
	dependents [][]int    // of each task, in the order of tasks
	missing    [][]string // missing dependencies of each task, in the given order
	edges      int
}

// New returns the graph of the tasks. A duplicate or empty ID is an error. Cycles and
// missing dependencies are not, because hand-edited sources may contain them.
func New(tasks []Task) (*Graph, error) {
	n := len(tasks)
	g := &Graph{tasks: slices.Clone(tasks), index: make(map[string]int, n),
		deps: make([][]int, n), dependents: make([][]int, n), missing: make([][]string, n)}
	for i, t := range g.tasks {
		if t.ID == "" {
			return nil, fmt.Errorf("task %d has no id", i)
		}
		if _, ok := g.index[t.ID]; ok {
			return nil, fmt.Errorf("two tasks have the id %q", t.ID)
		}
		g.index[t.ID] = i
	}
	seen := make([]int, n)      // one plus the last task that depends on this one
	unknown := map[string]int{} // the same for missing dependencies
	for i, t := range g.tasks {
		for _, d := range t.DependsOn {
			j, ok := g.index[d]
			switch {
			case !ok && unknown[d] != i+1:
				unknown[d] = i + 1
				g.missing[i] = append(g.missing[i], d)
			case ok && seen[j] != i+1:
				seen[j] = i + 1
				g.edges++
				g.deps[i] = append(g.deps[i], j)
				g.dependents[j] = append(g.dependents[j], i)
			}
		}
	}
	return g, nil
}

// Dependencies returns the existing direct dependencies of a task, nil for an unknown ID.
func (g *Graph) Dependencies(id string) []string { return g.named(g.deps, id) }

// Dependents returns the tasks that directly depend on a task, nil for an unknown ID.
func (g *Graph) Dependents(id string) []string { return g.named(g.dependents, id) }

// Missing returns the dependencies of a task that are not in the graph, nil for an unknown
// ID.
func (g *Graph) Missing(id string) []string {
	if i, ok := g.index[id]; ok {
		return slices.Clone(g.missing[i])
	}
	return nil
}

func (g *Graph) named(lists [][]int, id string) []string {
	i, ok := g.index[id]
	if !ok {
		return nil
	}
	return g.ids(lists[i])
}

func (g *Graph) ids(nodes []int) []string {
	ids := make([]string, len(nodes))
	for k, n := range nodes {
		ids[k] = g.tasks[n].ID
	}
	return ids
}

// Downstream returns the number of tasks that depend on a task, directly or indirectly.
func (g *Graph) Downstream(id string) int {
	_, n := g.reach(g.dependents, id)
	return max(0, n-1)
}

// Upstream returns a task and the tasks that it depends on, directly or indirectly, in the
// given order.
func (g *Graph) Upstream(id string) []string {
	reached, _ := g.reach(g.deps, id)
	var ids []string
	for i, ok := range reached {
		if ok {
			ids = append(ids, g.tasks[i].ID)
		}
	}
	return ids
}

// reach marks and counts the tasks that can be reached from id along edges, id included.
func (g *Graph) reach(edges [][]int, id string) (reached []bool, count int) {
	start, ok := g.index[id]
	if !ok {
		return nil, 0
	}
	reached = make([]bool, len(g.tasks))
	reached[start] = true
	queue := []int{start}
	for k := 0; k < len(queue); k++ {
		for _, next := range edges[queue[k]] {
			if !reached[next] {
				reached[next] = true
				queue = append(queue, next)
			}
		}
	}
	return reached, len(queue)
}
