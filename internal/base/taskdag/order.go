package taskdag

import "slices"

// OrderOptions selects the tasks that Order lists. The zero value selects all tasks except
// completed ones. Order never lists cancelled tasks.
type OrderOptions struct {
	IncludeCompleted bool
	ReadyOnly        bool // omit unfinished tasks that cannot start now
}

// Order lists the tasks so that each comes after all its dependencies: level by level, and
// within a level in the given order (Kahn, "Topological sorting of large networks", CACM 5,
// 1962). A cycle is a *CycleError.
func (g *Graph) Order(o OrderOptions) ([]string, error) {
	levels, err := g.levels(func(int) bool { return true })
	if err != nil {
		return nil, err
	}
	var order []string
	for _, level := range levels {
		for _, i := range level {
			listed := !o.ReadyOnly || g.ready(i)
			switch g.tasks[i].State {
			case Completed:
				listed = o.IncludeCompleted
			case Cancelled:
				listed = false
			}
			if listed {
				order = append(order, g.tasks[i].ID)
			}
		}
	}
	return order, nil
}

// Groups divides the unfinished tasks into the smallest number of groups whose tasks do not
// depend on each other. Group k contains the tasks whose longest chain of unfinished
// dependencies has k tasks. A cycle is a *CycleError.
func (g *Graph) Groups() ([][]string, error) {
	levels, err := g.levels(g.unfinished)
	if err != nil {
		return nil, err
	}
	groups := make([][]string, len(levels))
	for k, level := range levels {
		groups[k] = g.ids(level)
	}
	return groups, nil
}

// unfinished reports whether a task is neither completed nor cancelled.
func (g *Graph) unfinished(i int) bool {
	return g.tasks[i].State != Completed && g.tasks[i].State != Cancelled
}

// levels groups the tasks that keep selects by their longest distance from a root.
func (g *Graph) levels(keep func(int) bool) ([][]int, error) {
	waiting := make([]int, len(g.tasks))
	left := 0
	var current []int
	for i := range g.tasks {
		if !keep(i) {
			continue
		}
		left++
		for _, d := range g.deps[i] {
			if keep(d) {
				waiting[i]++
			}
		}
		if waiting[i] == 0 {
			current = append(current, i)
		}
	}
	var levels [][]int
	for len(current) > 0 {
		levels = append(levels, current)
		left -= len(current)
		var next []int
		for _, i := range current {
			for _, d := range g.dependents[i] {
				if !keep(d) {
					continue
				}
				if waiting[d]--; waiting[d] == 0 {
					next = append(next, d)
				}
			}
		}
		slices.Sort(next) // the given order
		current = next
	}
	if left > 0 {
		return nil, g.Cycle()
	}
	return levels, nil
}
