package tasks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/term"
	"cairn/internal/folder/workspace"
	"cairn/internal/task"
	"cairn/internal/task/taskgraph"
)

func (a *app) dagCommand() *cli.Command {
	var channel string
	stats := cli.NewCommand("stats", "Count tasks and dependencies", a.withGraph(func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		return a.dagStats(ctx, g, channel)
	}))
	var most int
	unblocks := cli.NewCommand("unblocks", "Rank the open tasks by how much work waits for them", a.withGraph(func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		list, err := g.Leverage(ctx, channel, most)
		return term.Show(a.Out, (*term.Output).Leverage)(append([]taskgraph.Detail{}, list...), err)
	}))
	cli.IntVar(unblocks.Flags(), &most, "limit", 10, 1, cli.NoBound, "most tasks to list")
	var format string
	graph := cli.NewCommand("graph", "Draw the tasks and their dependencies", a.withGraph(func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		return a.dagGraph(ctx, g, channel, format)
	}))
	addFormat(graph, &format)
	cmd := cli.Group("dag", "Answer questions about the dependencies of tasks", append(a.taskListings(&channel), stats, unblocks, graph)...)
	addChannel(cmd.PersistentFlags(), &channel)
	return cmd
}

func addChannel(fs *cli.FlagSet, channel *string) {
	fs.StringVar(channel, "channel", "", "cards, or a document such as /plans/a.md (default: dag.channel)")
}

// withGraph opens the folder's task graphs for fn.
func (a *app) withGraph(fn func(context.Context, *taskgraph.Tools, []string) error) func(*cli.Command, []string) error {
	return a.WithTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error { return fn(ctx, t.Graph, args) })
}

// printGraph prints a successful answer, and its message below it. It returns the outcome of
// another answer as an error.
func (a *app) printGraph(answer any, success bool, o taskgraph.Outcome, text func(*term.Output)) error {
	if !success {
		if o.Error != "" {
			return fmt.Errorf("%s: %s", o.Message, o.Error)
		}
		return errors.New(o.Message)
	}
	return a.Out.Print(answer, func() {
		text(a.Out)
		a.Out.Notes.Dim(term.Cut(o.Message, 80))
	})
}

// taskListings returns the subcommands of dag that list tasks.
func (a *app) taskListings(channel *string) []*cli.Command {
	limit := 10
	ready := cli.NewCommand("ready", "List the tasks that can start now", a.withGraph(func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		x := g.Ready(ctx, taskgraph.ReadyRequest{ChannelID: *channel, Limit: new(float64(limit)), Details: true})
		return a.printGraph(x, x.Success, x.Outcome, func(w *term.Output) { w.Details(x.Details, true) })
	}))
	cli.IntVar(ready.Flags(), &limit, "limit", limit, 1, cli.NoBound, "most tasks to list, up to 100")

	var completed bool
	order := cli.NewCommand("order", "List the tasks so that each comes after those it depends on", a.withGraph(func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		x := g.Order(ctx, taskgraph.OrderRequest{ChannelID: *channel, IncludeCompleted: completed, Details: true})
		return a.printGraph(x, x.Success, x.Outcome, func(w *term.Output) { w.Details(x.Details, false) })
	}))
	order.Flags().BoolVar(&completed, "completed", false, "include completed tasks")

	groups := cli.NewCommand("groups", "Group the open tasks into waves of tasks that can be done together", a.withGraph(func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		x := g.Groups(ctx, taskgraph.GroupsRequest{ChannelID: *channel, Details: true})
		return a.printGraph(x, x.Success, x.Outcome, func(w *term.Output) {
			left := x.Details
			for i, group := range x.ParallelGroups {
				w.Printf("wave %d\n", i+1)
				n := min(len(group), len(left))
				w.Details(left[:n], false)
				left = left[n:]
			}
			for _, e := range x.Excluded {
				w.Printf("in no wave: %s (%s)\n", e.ID, e.Reason)
			}
		})
	}))
	critical := cli.NewCommand("critical", "Show the longest chain of tasks", a.withGraph(func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		x := g.CriticalPath(ctx, taskgraph.CriticalPathRequest{ChannelID: *channel, Details: true})
		return a.printGraph(x, x.Success, x.Outcome, func(w *term.Output) {
			w.Details(x.Details, false)
			if x.TotalHours != nil && *x.TotalHours > 0 {
				w.Printf("%s h of work remain on this chain\n", strconv.FormatFloat(*x.TotalHours, 'f', -1, 64))
			}
		})
	}))
	blocking := cli.NewCommand("blocking TASK", "Show the tasks that a task waits for", a.withGraph(func(ctx context.Context, g *taskgraph.Tools, args []string) error {
		x := g.Blocking(ctx, taskgraph.BlockingRequest{ChannelID: *channel, TaskID: args[0], Details: true})
		return a.printGraph(x, x.Success, x.Outcome, func(w *term.Output) { w.Details(x.Details, false) })
	}))
	return []*cli.Command{ready, order, groups, critical, blocking}
}

func (a *app) dagStats(ctx context.Context, g *taskgraph.Tools, channel string) error {
	x := g.Stats(ctx, taskgraph.StatsRequest{ChannelID: channel, Details: true})
	return a.printGraph(x, x.Success, x.Outcome, func(w *term.Output) {
		if x.Stats != nil {
			w.Stats(x.Stats)
		}
		for _, warning := range x.Warnings {
			w.Printf("%s\n", term.Cut("warning: "+term.Plain(warning.Message), 80))
		}
	})
}

func addFormat(cmd *cli.Command, format *string) {
	*format = task.FormatASCII
	cli.ChoiceVar(cmd.Flags(), format, "format", "one of {"+strings.Join(task.Formats(), ",")+"}", task.Formats()...)
}

func (a *app) dagGraph(ctx context.Context, g *taskgraph.Tools, channel, format string) error {
	if a.Out.JSON {
		format = task.FormatJSON
	}
	text, err := g.Draw(ctx, channel, format)
	if err != nil {
		return err
	}
	a.Out.Drawing(text, format == task.FormatASCII)
	return nil
}

// graphCommand returns the command for dag graph, and with --stats for dag stats, that has
// its name in CueDeck.
func (a *app) graphCommand() *cli.Command {
	var stats bool
	var channel, format string
	cmd := cli.NewCommand("graph", "Draw the cards and their dependencies; the same as dag graph", a.withGraph(func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		if stats {
			return a.dagStats(ctx, g, channel)
		}
		return a.dagGraph(ctx, g, channel, format)
	}))
	cmd.Flags().BoolVar(&stats, "stats", false, "count tasks and dependencies instead")
	addChannel(cmd.Flags(), &channel)
	addFormat(cmd, &format)
	return cmd
}
