// Package taskgraph implements the seven dag_* tools for the cards or for the tasks of a
// document. A channel selects one of them. Package taskdag implements the graph.
package taskgraph

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

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
	cards     *cards.Store
	docs      *doctask.Docs
	o         Options
	boards    *lru.Cache[string, *board] // of documents, by path and hash
	cardBoard atomic.Pointer[cardBoard]  // of the cards at the last request
}

type cardBoard struct {
	of    *cards.Board
	board *board
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
	boards, _ := lru.New[string, *board](32) // fails only for sizes below 1
	return &Tools{cards: c, docs: d, o: o, boards: boards}
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

// Failure is the reason why a request failed.
type Failure struct{ Message, Detail, Code string }

func (f *Failure) Error() string {
	if f.Detail != "" {
		return f.Message + ": " + f.Detail
	}
	return f.Message
}

func internal(err error) error {
	return &Failure{"The tasks cannot be read", err.Error(), CodeInternal}
}

type channelKey struct{}

// WithChannel returns a context with the channel for requests that name none.
func WithChannel(ctx context.Context, channel string) context.Context {
	return context.WithValue(ctx, channelKey{}, channel)
}

// load returns the board of a channel. The error is a *Failure.
func (t *Tools) load(ctx context.Context, channel string) (*board, error) {
	if channel = strings.TrimSpace(channel); channel == "" {
		of, _ := ctx.Value(channelKey{}).(string)
		if channel = cmp.Or(strings.TrimSpace(of), t.o.DefaultChannel); channel == "-" {
			return nil, &Failure{Message: "channelId is required but not provided"}
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, internal(err)
	}
	if strings.EqualFold(channel, CardsChannel) {
		return t.loadCards()
	}
	if !strings.HasSuffix(channel, ".md") {
		return nil, &Failure{Message: noDAG}
	}
	tasks, hash, ok, err := t.docs.Tasks(channel)
	if err != nil {
		return nil, internal(err)
	}
	if !ok {
		return nil, &Failure{Message: noDAG}
	}
	key := strings.TrimPrefix(channel, "/") + "\x00" + hash
	if b, ok := t.boards.Get(key); ok {
		return b, nil
	}
	b, err := newBoard(tasks)
	if err != nil {
		return nil, internal(err)
	}
	t.boards.Add(key, b)
	return b, nil
}

func (t *Tools) loadCards() (*board, error) {
	all, err := t.cards.Board()
	if err != nil {
		return nil, internal(err)
	}
	if last := t.cardBoard.Load(); last != nil && last.of == all {
		return last.board, nil
	}
	b, err := newBoard(task.Board(all.Tasks()))
	if err != nil {
		return nil, internal(err)
	}
	t.cardBoard.Store(&cardBoard{all, b})
	return b, nil
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
	return task.Draw(b.tasks, format, task.Task.GraphWord)
}

// Leverage returns at most limit unfinished tasks, those with the highest leverage first. 0
// means all.
func (t *Tools) Leverage(ctx context.Context, channel string, limit int) ([]Detail, error) {
	b, err := t.load(ctx, channel)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, t := range b.tasks {
		if !t.Over() {
			ids = append(ids, t.ID)
		}
	}
	rank := b.rank()
	slices.SortStableFunc(ids, func(x, y string) int { return cmp.Compare(rank[y], rank[x]) })
	if limit > 0 && limit < len(ids) {
		ids = ids[:limit]
	}
	return b.details(ids), nil
}
