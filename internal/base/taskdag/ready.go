package taskdag

import "slices"

// Reason explains why a dependency blocks.
type Reason string

// The reasons.
const (
	NotCompleted Reason = "not completed" // pending or in progress
	IsFailed     Reason = "failed"
	IsCancelled  Reason = "cancelled"
	IsMissing    Reason = "missing"
)

// Blocker is a dependency that has not been completed.
type Blocker struct {
	ID     string
	Reason Reason
}

// Blockers returns the direct dependencies of a task that are not completed: first the
// existing ones in the given order, then the missing ones. ok is false for an unknown ID.
func (g *Graph) Blockers(id string) (blockers []Blocker, ok bool) {
	i, ok := g.index[id]
	if !ok {
		return nil, false
	}
	for _, d := range g.deps[i] {
		switch g.tasks[d].State {
		case Completed:
		case Failed:
			blockers = append(blockers, Blocker{g.tasks[d].ID, IsFailed})
		case Cancelled:
			blockers = append(blockers, Blocker{g.tasks[d].ID, IsCancelled})
		default:
			blockers = append(blockers, Blocker{g.tasks[d].ID, NotCompleted})
		}
	}
	for _, m := range g.missing[i] {
		blockers = append(blockers, Blocker{m, IsMissing})
	}
	return blockers, true
}

// Ready returns the tasks that can start, in the given order: they are pending, and all
// their dependencies exist and are completed. It returns at most limit tasks, or all if
// limit is not positive.
func (g *Graph) Ready(limit int) []string {
	var ready []string
	for i := range g.tasks {
		if g.ready(i) {
			ready = append(ready, g.tasks[i].ID)
			if len(ready) == limit {
				break
			}
		}
	}
	return ready
}

// IsReady reports whether a task can start.
func (g *Graph) IsReady(id string) bool {
	i, ok := g.index[id]
	return ok && g.ready(i)
}

func (g *Graph) ready(i int) bool {
	if g.tasks[i].State != Pending || len(g.missing[i]) > 0 {
		return false
	}
	return !slices.ContainsFunc(g.deps[i], func(d int) bool { return g.tasks[d].State != Completed })
}
