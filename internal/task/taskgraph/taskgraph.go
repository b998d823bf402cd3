// Package taskgraph answers the seven dag_* operations over a source of tasks:
// the board of cards, or the tasks of one document. A channel names the source.
//
// The computing is taskdag's; this package knows the wire: names, messages,
// defaults, and what is an answer and what an error.
package taskgraph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"cairn/graphrank"
	"cairn/internal/task"
	"cairn/internal/task/cards"
	"cairn/internal/task/doctask"
	"cairn/internal/taskdag"
)

// CardsChannel is the name of the board of cards.
const CardsChannel = "cards"

// Options of New. The zero value answers that the system is disabled.
type Options struct {
	Enabled        bool   // TASK_DAG_ENABLED
	DefaultChannel string // for requests that name none; empty means CardsChannel, "-" means that there is none
	DefaultReady   int    // DAG_DEFAULT_READY_TASKS_LIMIT; 0 means 10
	MaxReady       int    // DAG_MAX_READY_TASKS_LIMIT; 0 means 100
	// Beyond these a graph is warned about; 0 means 10, 10 and 20
	// (DAG_MAX_IN_DEGREE_WARNING, DAG_MAX_OUT_DEGREE_WARNING, DAG_MAX_CHAIN_LENGTH_WARNING).
	MaxInDegree, MaxOutDegree, MaxChain int
}

// Tools answers the operations. It is safe for concurrent use. Nothing is kept longer than
// the files it was made from stay as they are.
type Tools struct {
	cards *cards.Store
	docs  *doctask.Docs
	o     Options
	kept  *lru.Cache[string, *board] // of documents
}

// New returns the tools over the cards and documents of a workspace.
func New(c *cards.Store, d *doctask.Docs, o Options) *Tools {
	orElse := func(v *int, otherwise int) {
		if *v <= 0 {
			*v = otherwise
		}
	}
	orElse(&o.MaxReady, 100)
	orElse(&o.DefaultReady, 10)
	o.DefaultReady = min(o.DefaultReady, o.MaxReady)
	orElse(&o.MaxInDegree, 10)
	orElse(&o.MaxOutDegree, 10)
	orElse(&o.MaxChain, 20)
	if o.DefaultChannel == "" {
		o.DefaultChannel = CardsChannel
	}
	kept, _ := lru.New[string, *board](32) // fails for sizes below 1 only
	return &Tools{cards: c, docs: d, o: o, kept: kept}
}

// Codes of errorCode.
const (
	CodeCycle    = "CYCLE_DETECTED"
	CodeMissing  = "MISSING_NODE"
	CodeInternal = "INTERNAL_ERROR"
)

const (
	disabledMessage = "DAG system is disabled"
	noDAG           = "No DAG exists for this channel"
)

// failure is why there is no answer.
type failure struct{ message, detail, code string }

// board is the tasks of a channel with their graph. It is immutable.
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
			return schedule{} // a cycle has no times
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

// leverage is PageRank over the graph turned round: from every task that is not done
// rank flows to what it waits for, so that a task ranks high when much
// waits for it, directly or through others, and for little else.
func (b *board) leverage() map[string]float64 {
	var g graphrank.Graph
	for _, t := range b.tasks {
		if t.Done() {
			continue
		}
		g.AddNode(t.ID)
		for _, d := range b.graph.Dependencies(t.ID) {
			if !b.byID[d].Done() {
				g.Set(graphrank.Edge{From: t.ID, To: d, Type: graphrank.Dependency, Source: graphrank.Observed, Count: 1})
			}
		}
	}
	return g.PageRank(nil)
}

// open returns the board of a channel.
type channelKey struct{}

// WithChannel returns a context whose requests mean channel when they name none.
func WithChannel(ctx context.Context, channel string) context.Context {
	return context.WithValue(ctx, channelKey{}, channel)
}

func (t *Tools) open(ctx context.Context, channel string) (*board, *failure) {
	if !t.o.Enabled {
		return nil, &failure{message: disabledMessage}
	}
	return t.load(ctx, channel)
}

func (t *Tools) load(ctx context.Context, channel string) (*board, *failure) {
	if channel = strings.TrimSpace(channel); channel == "" {
		of, _ := ctx.Value(channelKey{}).(string)
		if channel = cmp.Or(strings.TrimSpace(of), t.o.DefaultChannel); channel == "-" {
			return nil, &failure{message: "channelId is required but not provided"}
		}
	}
	internal := func(err error) *failure {
		return &failure{message: "Reading the tasks went wrong", detail: err.Error(), code: CodeInternal}
	}
	if err := ctx.Err(); err != nil {
		return nil, internal(err)
	}
	if channel == CardsChannel {
		all, err := t.cards.Board()
		if err != nil {
			return nil, internal(err)
		}
		type made struct {
			b   *board
			err error
		}
		m := cards.Remember(all, "dagtools", func() made {
			b, err := newBoard(task.Board(all.Tasks()))
			return made{b, err}
		})
		if m.err != nil {
			return nil, internal(m.err)
		}
		return m.b, nil
	}
	if !strings.HasPrefix(channel, "/") || !strings.HasSuffix(channel, ".md") {
		return nil, &failure{message: noDAG}
	}
	tasks, hash, ok, err := t.docs.Tasks(channel)
	if err != nil {
		return nil, internal(err)
	}
	if !ok {
		return nil, &failure{message: noDAG}
	}
	key := channel + "\x00" + hash
	if b, ok := t.kept.Get(key); ok {
		return b, nil
	}
	b, err := newBoard(tasks)
	if err != nil {
		return nil, internal(err)
	}
	t.kept.Add(key, b)
	return b, nil
}

// cycleFailure says that the stored tasks wait for each other in a circle.
func cycleFailure(err error) *failure {
	return &failure{message: err.Error(), detail: "the tasks as stored depend on each other in a circle", code: CodeCycle}
}

// Detail is one task of an answer in full. Times are hours from now if every
// task starts as early as it can; they are absent for completed tasks and when
// there is a cycle.
type Detail struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Status   string   `json:"status"`
	Reason   string   `json:"reason,omitempty"` // why it can start, or cannot
	Blockers []string `json:"blockers,omitempty"`
	// Missing are the blockers that do not exist, FailedBlockers those that will
	// not be completed by waiting.
	Missing        []string `json:"missing,omitempty"`
	FailedBlockers []string `json:"failedBlockers,omitempty"`
	Estimate       *float64 `json:"estimate,omitempty"`
	EarliestStart  *float64 `json:"earliestStart,omitempty"`
	LatestStart    *float64 `json:"latestStart,omitempty"`
	Slack          *float64 `json:"slack,omitempty"`
	// Unblocks is how many tasks wait for it, directly or through others.
	Unblocks *int `json:"unblocks,omitempty"`
	// Leverage is its PageRank over the reversed graph, in [0, 1].
	Leverage *float64 `json:"leverage,omitempty"`
}

// maxUnblocks is up to how many details the tasks waiting for each are counted,
// which takes a walk through the graph each.
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
	if !t.Done() {
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

// reason says in a few words why a task can start, or what keeps it.
func (b *board) reason(t task.Task, blockers []taskdag.Blocker) string {
	node := t.Node()
	switch {
	case node.State == taskdag.Completed:
		return "completed"
	case len(blockers) > 0:
		var words []string
		for _, bl := range blockers {
			words = append(words, fmt.Sprintf("%s is %s", bl.ID, bl.Reason))
		}
		return strings.Join(words[:min(len(words), 5)], ", ") + more(len(words)-5)
	case node.State != taskdag.Pending:
		return strings.ReplaceAll(t.GraphWord(), "_", " ")
	}
	deps := b.graph.Dependencies(t.ID)
	if len(deps) == 0 {
		return "no dependencies"
	}
	return "completed: " + strings.Join(deps[:min(len(deps), 5)], ", ") + more(len(deps)-5)
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

func orEmpty(ids []string) []string {
	if ids == nil {
		return []string{}
	}
	return ids
}

// BlockedError is a task that may not start yet.
type BlockedError struct {
	ID       string
	Blockers []taskdag.Blocker
}

func (e *BlockedError) Error() string {
	ids := make([]string, len(e.Blockers))
	for i, b := range e.Blockers {
		ids[i] = b.ID
	}
	return fmt.Sprintf("Task %s blocked by incomplete dependencies: %s", e.ID, strings.Join(ids, ", "))
}

// ChannelError is a channel that has no tasks to work with.
type ChannelError struct{ Channel, Message, Detail string }

func (e *ChannelError) Error() string {
	if e.Detail != "" {
		return e.Message + ": " + e.Detail
	}
	return e.Message
}

// person is load for those who need no switch: commands and other tools.
func (t *Tools) person(ctx context.Context, channel string) (*board, error) {
	b, fail := t.load(ctx, channel)
	if fail != nil {
		return nil, &ChannelError{channel, fail.message, fail.detail}
	}
	return b, nil
}

// CheckStart refuses to start a task whose dependencies are not completed
// (DAG_ENFORCE_ON_STATUS_CHANGE), with a *BlockedError. Nil means that it may start, or is
// unknown.
func (t *Tools) CheckStart(ctx context.Context, channel, id string) error {
	b, err := t.person(ctx, channel)
	if err != nil {
		return err
	}
	if blockers, _ := b.graph.Blockers(id); len(blockers) > 0 {
		return &BlockedError{id, blockers}
	}
	return nil
}

// Draw writes the graph of a channel in one of task.Formats, for people.
func (t *Tools) Draw(ctx context.Context, channel, format string) (string, error) {
	b, err := t.person(ctx, channel)
	if err != nil {
		return "", err
	}
	return task.Draw(b.tasks, format, task.Task.GraphWord)
}

// Leverage lists the tasks not yet done by how much finishing them unblocks,
// most first, at most limit of them (0 means all).
func (t *Tools) Leverage(ctx context.Context, channel string, limit int) ([]Detail, error) {
	b, err := t.person(ctx, channel)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, t := range b.tasks {
		if !t.Done() {
			ids = append(ids, t.ID)
		}
	}
	rank := b.rank()
	slices.SortStableFunc(ids, func(x, y string) int {
		switch {
		case rank[x] > rank[y]:
			return -1
		case rank[x] < rank[y]:
			return 1
		}
		return 0
	})
	if limit > 0 && limit < len(ids) {
		ids = ids[:limit]
	}
	return b.details(ids), nil
}
