package taskgraph

import (
	"fmt"
	"strings"

	"cairn/internal/base/taskdag"
	"cairn/internal/task"
)

// board answers questions about the tasks of a channel.
type board struct {
	*task.Board
	all func() *task.Board // with every archived card, as update_task checks for cycles
}

// Detail describes a task of an answer. Times are hours from now. Completed tasks and tasks
// of a graph with a cycle have none.
type Detail struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Status   string   `json:"status"`
	Reason   string   `json:"reason,omitempty"` // why the task can or cannot start
	Blockers []string `json:"blockers,omitempty"`
	// Missing lists the blockers that do not exist, FailedBlockers those that failed or
	// were cancelled.
	Missing        []string `json:"missing,omitempty"`
	FailedBlockers []string `json:"failedBlockers,omitempty"`
	Estimate       *float64 `json:"estimate,omitempty"`
	EarliestStart  *float64 `json:"earliestStart,omitempty"`
	LatestStart    *float64 `json:"latestStart,omitempty"`
	Slack          *float64 `json:"slack,omitempty"`
	// Unblocks is the number of tasks that wait for this one, directly or indirectly.
	Unblocks *int `json:"unblocks,omitempty"`
	// Leverage is the PageRank of the task in the reversed graph, in [0, 1].
	Leverage *float64 `json:"leverage,omitempty"`
}

// maxUnblocks is the maximum number of details with Unblocks, because each count traverses
// the graph.
const maxUnblocks = 200

func (b board) details(ids []string) []Detail {
	out := make([]Detail, len(ids))
	for i, id := range ids {
		out[i] = b.detail(id, len(ids) <= maxUnblocks)
	}
	return out
}

// detail describes a task, or a dependency that does not exist.
func (b board) detail(id string, unblocks bool) Detail {
	t, ok := b.ByID[id]
	if !ok {
		return Detail{ID: id, Title: "(missing)", Status: "missing", Reason: CodeMissing}
	}
	d := Detail{ID: id, Title: t.Title, Status: t.GraphWord()}
	blockers, _ := b.Graph.Blockers(id)
	for _, bl := range blockers {
		d.Blockers = append(d.Blockers, bl.ID)
		switch bl.Reason {
		case taskdag.IsMissing:
			d.Missing = append(d.Missing, bl.ID)
		case taskdag.IsFailed, taskdag.IsCancelled:
			d.FailedBlockers = append(d.FailedBlockers, bl.ID)
		}
	}
	d.Reason = b.reason(t, blockers)
	if timing, ok := b.Schedule().Timings[id]; ok {
		d.Estimate, d.EarliestStart, d.LatestStart, d.Slack = &timing.Estimate, &timing.Earliest, &timing.Latest, &timing.Slack
	}
	if !t.Over() {
		if unblocks {
			d.Unblocks = new(b.Graph.Downstream(id))
		}
		if r, ok := b.Leverage()[id]; ok {
			d.Leverage = &r
		}
	}
	return d
}

// reason returns a short text that says why a task can start or what blocks it.
func (b board) reason(t task.Task, blockers []taskdag.Blocker) string {
	node := t.Node()
	switch {
	case t.Over():
		return t.GraphWord()
	case len(blockers) > 0:
		words := make([]string, len(blockers))
		for i, bl := range blockers {
			words[i] = fmt.Sprintf("%s is %s", bl.ID, bl.Reason)
		}
		return list(words)
	case node.State != taskdag.Pending:
		return strings.ReplaceAll(t.GraphWord(), "_", " ")
	}
	deps := b.Graph.Dependencies(t.ID)
	if len(deps) == 0 {
		return "no dependencies"
	}
	return "completed: " + list(deps)
}

// list joins the first five words and counts the others.
func list(words []string) string {
	if n := len(words) - 5; n > 0 {
		return strings.Join(words[:5], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(words, ", ")
}
