package taskgraph

import (
	"fmt"
	"strings"
	"sync"

	"cairn/graphrank"
	"cairn/internal/base/taskdag"
	"cairn/internal/task"
)

// board holds the tasks of a channel and their graph. It is immutable.
type board struct {
	tasks    []task.Task
	byID     map[string]task.Task
	graph    *taskdag.Graph
	schedule func() schedule
	rank     func() map[string]float64
}

type schedule struct {
	timings map[string]taskdag.Timing
	total   float64 // hours
}

func newBoard(tasks []task.Task) (*board, error) {
	g, err := taskdag.New(task.Nodes(tasks))
	if err != nil {
		return nil, err
	}
	b := &board{tasks: tasks, byID: make(map[string]task.Task, len(tasks)), graph: g}
	for _, t := range tasks {
		b.byID[t.ID] = t
	}
	b.schedule = sync.OnceValue(func() schedule {
		timings, total, err := g.Schedule()
		if err != nil {
			return schedule{} // a graph with a cycle has no schedule
		}
		s := schedule{make(map[string]taskdag.Timing, len(timings)), total}
		for _, t := range timings {
			s.timings[t.ID] = t
		}
		return s
	})
	b.rank = sync.OnceValue(b.leverage)
	return b, nil
}

// leverage returns PageRank over the reversed graph of the unfinished tasks. A task passes
// its rank on to its dependencies, so a task ranks high if many others wait for it, directly
// or indirectly, and for few other tasks.
func (b *board) leverage() map[string]float64 {
	var g graphrank.Graph
	for _, t := range b.tasks {
		if t.Over() {
			continue
		}
		g.AddNode(t.ID)
		for _, d := range b.graph.Dependencies(t.ID) {
			if !b.byID[d].Over() {
				g.Set(graphrank.Edge{From: t.ID, To: d, Type: graphrank.Dependency, Source: graphrank.Observed, Count: 1})
			}
		}
	}
	return g.PageRank()
}

// id returns the ID of the task that a request names by its ID or, ignoring case, by its ID
// or title. It returns an unknown name without a leading "#".
func (b *board) id(name string) string {
	name = strings.TrimPrefix(strings.TrimSpace(name), "#")
	if _, ok := b.byID[name]; ok {
		return name
	}
	for _, t := range b.tasks {
		if strings.EqualFold(t.ID, name) {
			return t.ID
		}
	}
	for _, t := range b.tasks {
		if name != "" && strings.EqualFold(t.Title, name) {
			return t.ID
		}
	}
	return name
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

func (b *board) details(ids []string) []Detail {
	out := make([]Detail, len(ids))
	for i, id := range ids {
		out[i] = b.detail(id, len(ids) <= maxUnblocks)
	}
	return out
}

func (b *board) detail(id string, unblocks bool) Detail {
	t := b.byID[id]
	d := Detail{ID: id, Title: t.Title, Status: t.GraphWord()}
	blockers, _ := b.graph.Blockers(id)
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
	if timing, ok := b.schedule().timings[id]; ok {
		d.Estimate, d.EarliestStart, d.LatestStart, d.Slack = &timing.Estimate, &timing.Earliest, &timing.Latest, &timing.Slack
	}
	if !t.Over() {
		if unblocks {
			n := b.graph.Downstream(id)
			d.Unblocks = &n
		}
		if r, ok := b.rank()[id]; ok {
			d.Leverage = &r
		}
	}
	return d
}

// blocker describes a blocker, which may not exist.
func (b *board) blocker(bl taskdag.Blocker, unblocks bool) Detail {
	if bl.Reason == taskdag.IsMissing {
		return Detail{ID: bl.ID, Title: "(missing)", Status: "missing", Reason: CodeMissing}
	}
	return b.detail(bl.ID, unblocks)
}

// reason returns a short text that says why a task can start or what blocks it.
func (b *board) reason(t task.Task, blockers []taskdag.Blocker) string {
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
	deps := b.graph.Dependencies(t.ID)
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
