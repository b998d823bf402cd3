package taskgraph

import (
	"context"
	"errors"
	"fmt"

	"cairn/internal/base/taskdag"
)

// StatsRequest holds the arguments of dag_get_stats.
type StatsRequest struct {
	ChannelID string `json:"channelId,omitempty" jsonschema:"'cards' (default), or a document such as '/plans/a.md'"`
	Details   bool   `json:"details,omitempty" schema:"default=false" jsonschema:"Add title, status, blockers, slack, number of tasks unblocked"` // with warnings
}

// StatsAnswer is the answer of dag_get_stats. If there are no tasks, Stats is nil and Summary
// is zero.
type StatsAnswer struct {
	Success  bool      `json:"success"`
	Stats    *Stats    `json:"stats"`
	Summary  Summary   `json:"summary"`
	Warnings []Warning `json:"warnings,omitempty"`
	Outcome
}

// Stats holds the counts of a graph.
type Stats = taskdag.Stats

// Summary holds the main counts of Stats.
type Summary struct {
	Nodes     int `json:"nodes"`
	Edges     int `json:"edges"`
	Ready     int `json:"ready"`
	Blocked   int `json:"blocked"`
	Completed int `json:"completed"`
	Depth     int `json:"depth"`
}

// Warning describes an unusual property of a graph.
type Warning struct {
	Code    string   `json:"code"` // HIGH_IN_DEGREE, HIGH_OUT_DEGREE, LONG_CHAIN, ORPHANED_NODE, CYCLE_DETECTED or MISSING_NODE
	Tasks   []string `json:"tasks"`
	Message string   `json:"message"`
}

// Stats implements dag_get_stats.
func (t *Tools) Stats(ctx context.Context, r StatsRequest) *StatsAnswer {
	a := &StatsAnswer{}
	a.Success = t.answer(ctx, r.ChannelID, &a.Outcome, func(b board) error {
		if len(b.Tasks) == 0 {
			a.Message = noDAG
			return nil
		}
		s, err := b.Graph.Stats()
		a.Stats = &s
		a.Summary = Summary{s.Nodes, s.Edges, s.Ready, s.Blocked, s.Completed, s.Depth}
		a.Message = fmt.Sprintf("DAG has %d tasks with %d dependencies", s.Nodes, s.Edges)
		if r.Details || err != nil {
			a.Warnings = t.warnings(b, s, err)
		}
		return nil
	})
	return a
}

// warnings returns the warnings about a graph in a fixed order.
func (t *Tools) warnings(b board, s taskdag.Stats, cycle error) []Warning {
	var in, out, orphans, missing []string
	for _, task := range b.Tasks {
		deps, dependents := len(b.Graph.Dependencies(task.ID)), len(b.Graph.Dependents(task.ID))
		unknown := len(b.Graph.Missing(task.ID))
		if deps > t.o.MaxInDegree {
			in = append(in, task.ID)
		}
		if dependents > t.o.MaxOutDegree {
			out = append(out, task.ID)
		}
		if deps+dependents+unknown == 0 && s.Edges > 0 {
			orphans = append(orphans, task.ID)
		}
		if unknown > 0 {
			missing = append(missing, task.ID)
		}
	}
	var all []Warning
	add := func(code string, tasks []string, format string, args ...any) {
		if len(tasks) > 0 {
			all = append(all, Warning{code, tasks, fmt.Sprintf(format, args...)})
		}
	}
	if c, ok := errors.AsType[*taskdag.CycleError](cycle); ok {
		add(CodeCycle, c.Path, "%s", c)
	}
	add(CodeMissing, missing, "%d tasks depend on tasks that do not exist", len(missing))
	add("HIGH_IN_DEGREE", in, "%d tasks have more than %d dependencies", len(in), t.o.MaxInDegree)
	add("HIGH_OUT_DEGREE", out, "%d tasks have more than %d dependents", len(out), t.o.MaxOutDegree)
	if s.Depth > t.o.MaxChain {
		path, _ := b.Graph.CriticalPath()
		add("LONG_CHAIN", path, "the longest chain has %d tasks, more than %d", s.Depth, t.o.MaxChain)
	}
	add("ORPHANED_NODE", orphans, "%d tasks have neither dependencies nor dependents", len(orphans))
	return all
}
