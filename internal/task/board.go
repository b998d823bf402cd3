package task

import (
	"slices"
	"strings"
	"sync"

	"cairn/graphrank"
	"cairn/internal/base/taskdag"
)

// Board is the tasks of one source with the graph of their dependencies. It is immutable.
type Board struct {
	Tasks []Task
	ByID  map[string]Task
	Graph *taskdag.Graph
	// Schedule computes the times of the unfinished tasks once.
	Schedule func() Schedule
	// Leverage returns PageRank over the reversed graph of the unfinished tasks, computed
	// once. A task passes its rank on to its dependencies, so a task ranks high if many
	// others wait for it, directly or indirectly, and for few other tasks.
	Leverage func() map[string]float64
}

// Schedule holds the times of unfinished tasks. It is zero for a graph with a cycle.
type Schedule struct {
	Timings map[string]taskdag.Timing // by ID
	Total   float64                   // hours
}

// NewBoard returns the board of tasks, without those that have no ID or the ID of an earlier one.
func NewBoard(tasks []Task) *Board {
	b := &Board{ByID: make(map[string]Task, len(tasks))}
	var nodes []taskdag.Task
	for _, t := range tasks {
		if _, twice := b.ByID[t.ID]; !twice && t.ID != "" {
			b.Tasks, nodes, b.ByID[t.ID] = append(b.Tasks, t), append(nodes, t.Node()), t
		}
	}
	b.Graph, _ = taskdag.New(nodes) // never fails: the IDs are distinct
	b.Leverage = sync.OnceValue(b.leverage)
	b.Schedule = sync.OnceValue(func() Schedule {
		timings, total, err := b.Graph.Schedule()
		if err != nil {
			return Schedule{}
		}
		s := Schedule{make(map[string]taskdag.Timing, len(timings)), total}
		for _, t := range timings {
			s.Timings[t.ID] = t
		}
		return s
	})
	return b
}

// Named returns the ID of the task that a request names by its ID or, ignoring case, by its
// ID or title. It returns an unknown name without a leading "#".
func (b *Board) Named(name string) string {
	name = strings.TrimPrefix(strings.TrimSpace(name), "#")
	if _, ok := b.ByID[name]; ok || name == "" {
		return name
	}
	for _, key := range []func(Task) string{func(t Task) string { return t.ID }, func(t Task) string { return t.Title }} {
		if i := slices.IndexFunc(b.Tasks, func(t Task) bool { return strings.EqualFold(key(t), name) }); i >= 0 {
			return b.Tasks[i].ID
		}
	}
	return name
}

// Unfinished returns the tasks of ids that are not done or do not exist.
func (b *Board) Unfinished(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return b.ByID[id].Done() })
}

func (b *Board) leverage() map[string]float64 {
	var g graphrank.Graph
	for _, t := range b.Tasks {
		if t.Over() {
			continue
		}
		g.AddNode(t.ID)
		for _, d := range b.Graph.Dependencies(t.ID) {
			if !b.ByID[d].Over() {
				g.Set(graphrank.Edge{From: t.ID, To: d, Type: graphrank.Dependency, Source: graphrank.Observed, Count: 1})
			}
		}
	}
	return g.PageRank()
}

// Live returns the tasks that are not archived and the archived tasks on which they depend
// directly, in the same order. It removes the dependencies of archived tasks that are not
// among these.
func Live(all []Task) []Task {
	wanted := make(map[string]bool, len(all))
	for _, t := range all {
		if t.Status == Archived {
			continue
		}
		wanted[t.ID] = true
		for _, d := range t.DependsOn {
			wanted[d] = true
		}
	}
	var live []Task
	for _, t := range all {
		if !wanted[t.ID] {
			continue
		}
		if t.Status == Archived {
			t.DependsOn = slices.DeleteFunc(slices.Clone(t.DependsOn), func(d string) bool { return !wanted[d] })
		}
		live = append(live, t)
	}
	return live
}
