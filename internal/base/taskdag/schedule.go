package taskdag

import "slices"

// CriticalPath returns the longest chain of tasks, including completed tasks and excluding
// cancelled ones. Of several it returns the first in the order of Order. If no task depends
// on another, the path consists of one task. A cycle is a *CycleError.
func (g *Graph) CriticalPath() ([]string, error) {
	levels, err := g.levels(func(int) bool { return true })
	if err != nil {
		return nil, err
	}
	length := make([]int, len(g.tasks))
	before := make([]int, len(g.tasks))
	end := -1
	for _, level := range levels {
		for _, i := range level {
			if g.tasks[i].State == Cancelled {
				continue
			}
			before[i] = -1
			for _, d := range g.deps[i] {
				if g.tasks[d].State != Cancelled && (before[i] < 0 || length[d] > length[before[i]]) {
					before[i] = d
				}
			}
			if before[i] >= 0 {
				length[i] = length[before[i]]
			}
			length[i]++
			if end < 0 || length[i] > length[end] {
				end = i
			}
		}
	}
	var path []int
	for i := end; i >= 0; i = before[i] {
		path = append(path, i)
	}
	slices.Reverse(path)
	return g.ids(path), nil
}

// Timing holds the earliest and latest start of a task. Times are hours from now.
type Timing struct {
	ID       string
	Estimate float64 // work in hours; DefaultEstimate if the task has none
	Earliest float64 // earliest possible start
	Latest   float64 // latest start that does not delay the end of all work
	Slack    float64 // Latest − Earliest; 0 on the critical path
}

// DefaultEstimate is the work assumed for a task without an estimate, in hours.
const DefaultEstimate = 1

// Schedule applies the critical-path method (Kelley and Walker, "Critical-path planning and
// scheduling", 1959) to the unfinished tasks: a forward pass computes the earliest starts,
// a backward pass the latest. It assumes that any number of tasks can run in parallel. total
// is the number of hours until all tasks are done. The timings have the order of Order. A
// cycle is a *CycleError.
func (g *Graph) Schedule() (timings []Timing, total float64, err error) {
	keep := g.unfinished
	levels, err := g.levels(keep)
	if err != nil {
		return nil, 0, err
	}
	n := len(g.tasks)
	estimate, earliest, latest := make([]float64, n), make([]float64, n), make([]float64, n)
	for _, level := range levels {
		for _, i := range level {
			if estimate[i] = g.tasks[i].Estimate; estimate[i] <= 0 {
				estimate[i] = DefaultEstimate
			}
			for _, d := range g.deps[i] {
				if keep(d) {
					earliest[i] = max(earliest[i], earliest[d]+estimate[d])
				}
			}
			total = max(total, earliest[i]+estimate[i])
		}
	}
	for _, level := range slices.Backward(levels) {
		for _, i := range level {
			finish := total
			for _, d := range g.dependents[i] {
				if keep(d) {
					finish = min(finish, latest[d])
				}
			}
			latest[i] = finish - estimate[i]
		}
	}
	for _, level := range levels {
		for _, i := range level {
			timings = append(timings, Timing{g.tasks[i].ID, estimate[i], earliest[i], latest[i], latest[i] - earliest[i]})
		}
	}
	return timings, total, nil
}

// Stats holds the counts of a graph. A task that is neither ready nor completed counts as
// blocked, including work in progress, so Ready + Blocked + Completed == Nodes.
type Stats struct {
	Nodes      int     `json:"nodeCount"`
	Edges      int     `json:"edgeCount"`
	Roots      int     `json:"rootCount"`       // tasks without existing dependencies
	Leaves     int     `json:"leafCount"`       // tasks without dependents
	Depth      int     `json:"maxDepth"`        // tasks on the critical path, 0 for a graph with a cycle
	Degree     float64 `json:"averageInDegree"` // mean number of dependencies of a task
	OutDegree  float64 `json:"averageOutDegree"`
	Ready      int     `json:"readyTaskCount"`
	Blocked    int     `json:"blockedTaskCount"`
	Completed  int     `json:"completedTaskCount"`
	InProgress int     `json:"inProgressTaskCount"` // part of Blocked
}

// Stats returns the counts of the graph. For a graph with a cycle, Depth is 0 and the error
// is a *CycleError.
func (g *Graph) Stats() (Stats, error) {
	s := Stats{Nodes: len(g.tasks), Edges: g.edges}
	for i, t := range g.tasks {
		if len(g.deps[i]) == 0 {
			s.Roots++
		}
		if len(g.dependents[i]) == 0 {
			s.Leaves++
		}
		switch {
		case t.State == Completed:
			s.Completed++
		case g.ready(i):
			s.Ready++
		default:
			s.Blocked++
		}
		if t.State == InProgress {
			s.InProgress++
		}
	}
	if s.Nodes > 0 {
		s.Degree = float64(s.Edges) / float64(s.Nodes)
		s.OutDegree = s.Degree
	}
	path, err := g.CriticalPath()
	s.Depth = len(path)
	return s, err
}
