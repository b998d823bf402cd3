// Package taskgraph implements the seven dag_* tools for the cards or for the tasks of a
// document. A channel selects one of them. Package taskdag implements the graph.
package taskgraph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/task"
	"cairn/internal/task/cards"
	"cairn/internal/task/doctask"
)

// CardsChannel is the name of the channel of the cards.
const CardsChannel = "cards"

// Options configures New. With the zero value every request fails because the tools are
// disabled.
type Options struct {
	Enabled        bool   // TASK_DAG_ENABLED
	DefaultChannel string // for requests without a channel; "" means CardsChannel, "-" means none
	DefaultReady   int    // DAG_DEFAULT_READY_TASKS_LIMIT; 0 means 10
	MaxReady       int    // DAG_MAX_READY_TASKS_LIMIT; 0 means 100
	// Larger values in a graph cause a warning; 0 means 10, 10 and 20
	// (DAG_MAX_IN_DEGREE_WARNING, DAG_MAX_OUT_DEGREE_WARNING, DAG_MAX_CHAIN_LENGTH_WARNING).
	MaxInDegree, MaxOutDegree, MaxChain int
}

// Tools implements the tools. It is safe for concurrent use.
type Tools struct {
	cards *cards.Store
	docs  *doctask.Docs
	o     Options
}

// New returns the tools over the cards and documents of a workspace.
func New(c *cards.Store, d *doctask.Docs, o Options) *Tools {
	o.MaxReady = cmp.Or(o.MaxReady, 100)
	o.DefaultReady = min(cmp.Or(o.DefaultReady, 10), o.MaxReady)
	o.MaxInDegree, o.MaxOutDegree, o.MaxChain = cmp.Or(o.MaxInDegree, 10), cmp.Or(o.MaxOutDegree, 10), cmp.Or(o.MaxChain, 20)
	o.DefaultChannel = cmp.Or(o.DefaultChannel, CardsChannel)
	return &Tools{c, d, o}
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

// unreadable is the message of an error that is not a *task.Error.
const unreadable = "The tasks cannot be read"

func internal(err error) error { return fmt.Errorf("%s: %w", unreadable, err) }

type channelKey struct{}

// WithChannel returns a context with the channel for requests that name none.
func WithChannel(ctx context.Context, channel string) context.Context {
	return context.WithValue(ctx, channelKey{}, channel)
}

// load returns the board of a channel. The error is a *task.Error, or made by internal.
func (t *Tools) load(ctx context.Context, channel string) (_ board, err error) {
	if channel = strings.TrimSpace(channel); channel == "" {
		of, _ := ctx.Value(channelKey{}).(string)
		if channel = cmp.Or(strings.TrimSpace(of), t.o.DefaultChannel); channel == "-" {
			return board{}, &task.Error{Message: "channelId is required but not provided"}
		}
	}
	if err := ctx.Err(); err != nil {
		return board{}, internal(err)
	}
	var b *task.Board
	whole := func() *task.Board { return b }
	switch {
	case strings.EqualFold(channel, CardsChannel):
		var all *cards.Board
		if all, err = t.cards.Board(); err == nil {
			b, whole = all.Live(), all.All
		}
	case strings.HasSuffix(channel, ".md"):
		b, err = t.docs.Board(channel)
	}
	switch {
	case err != nil:
		return board{}, internal(err)
	case b == nil:
		return board{}, &task.Error{Message: noDAG}
	}
	return board{b, whole}, nil
}

// Check returns an error if a channel has no tasks.
func (t *Tools) Check(ctx context.Context, channel string) error {
	_, err := t.load(ctx, channel)
	return err
}

// Draw returns the graph of a channel in one of task.Formats.
func (t *Tools) Draw(ctx context.Context, channel, format string) (string, error) {
	b, err := t.load(ctx, channel)
	if err != nil {
		return "", err
	}
	return task.Draw(b.Tasks, format, task.Task.GraphWord)
}

// Leverage returns at most limit unfinished tasks, those with the highest leverage first. 0
// means all.
func (t *Tools) Leverage(ctx context.Context, channel string, limit int) ([]Detail, error) {
	b, err := t.load(ctx, channel)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, t := range b.Tasks {
		if !t.Over() {
			ids = append(ids, t.ID)
		}
	}
	rank := b.Leverage()
	slices.SortStableFunc(ids, func(x, y string) int { return cmp.Compare(rank[y], rank[x]) })
	if limit > 0 && limit < len(ids) {
		ids = ids[:limit]
	}
	return b.details(ids), nil
}
