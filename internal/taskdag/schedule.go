package taskdag

import "slices"

// CriticalPath returns the longest chain of tasks, completed ones included and
// cancelled ones left out; of several, the first in the order of Order. Isolated tasks give a path of one task,
// an empty graph an empty path.
func (g *Graph) CriticalPath() ([]string, error) {
	path, err := g.longest(func(int) float64 { return 1 })
	return g.ids(path), err
}

func (g *Graph) longest(cost func(int) float64) ([]int, error) {
	levels, err := g.levels(func(int) bool { return true })
	if err != nil {
		return nil, err
	}
	length := make([]float64, len(g.tasks))
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
			length[i] += cost(i)
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
	return path, nil
}

// Timing holds when a task can and must start, in hours from now.
type Timing struct {
	ID       string
	Estimate float64 // hours; DefaultEstimate if the task has none
	Earliest float64 // start, if every task starts as early as it can
	Latest   float64 // start that does not delay the end of all work
	Slack    float64 // Latest − Earliest; 0 on the critical path
}

// DefaultEstimate is the work assumed for a task without an estimate, in hours.
const DefaultEstimate = 1

// Schedule applies the critical-path method (Kelley and Walker, "Critical-path
// planning and scheduling", 1959) to the unfinished tasks: a forward pass for the
// earliest starts, a backward pass for the latest. It assumes that any number of
// tasks can run at once. total is the hours until all tasks are done. The timings
// have the order of Order.
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

// Stats counts a graph. Ready + Blocked + Completed == Nodes: a task that is neither
// ready nor completed counts as blocked.
type Stats struct {
	Nodes, Edges     int
	Roots, Leaves    int // without dependencies that exist; without dependents
	Depth            int // tasks on the critical path
	Ready            int
	Blocked          int
	Completed        int
	InProgress       int // those of Blocked that are being worked on
	InDegree, OutDeg float64
}

// Stats counts the graph. With a cycle the depth is 0 and the error is a
// *CycleError.
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
		s.InDegree = float64(s.Edges) / float64(s.Nodes)
		s.OutDeg = s.InDegree
	}
	path, err := g.CriticalPath()
	s.Depth = len(path)
	return s, err
}
