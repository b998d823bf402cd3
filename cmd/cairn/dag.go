package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/task"
	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
)

func (a *app) dagCommand() *cobra.Command {
	var channel string
	cmd := &cobra.Command{
		Use:   "dag",
		Short: "Say what follows from the dependencies of tasks",
		Long: `Say what follows from the dependencies of tasks: of the cards, or with --channel
of the tasks in one document. The commands work whether or not the tools are on.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&channel, "channel", "", "cards, or a document such as /plans/a.md (default: dag.channel)")

	var limit int
	ready := a.dagSub("ready", "List what can start now", 0, func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		r := taskgraph.ReadyRequest{ChannelID: channel, Details: true}
		if limit > 0 {
			n := float64(limit)
			r.Limit = &n
		}
		x := g.Ready(ctx, r)
		return a.tasksAnswer(x, x.Success, x.Message, x.Error, func() { a.details(x.Details, true) })
	})
	ready.Flags().IntVar(&limit, "limit", 0, "most tasks to list, up to 100 (default 10)")

	var completed bool
	order := a.dagSub("order", "List the tasks so that each comes after what it depends on", 0, func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		x := g.Order(ctx, taskgraph.OrderRequest{ChannelID: channel, IncludeCompleted: completed, Details: true})
		return a.tasksAnswer(x, x.Success, x.Message, x.Error, func() { a.details(x.Details, false) })
	})
	order.Flags().BoolVar(&completed, "completed", false, "with those that are completed")

	groups := a.dagSub("groups", "Group the open tasks into waves that can be worked on at once", 0, func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		x := g.Groups(ctx, taskgraph.GroupsRequest{ChannelID: channel, Details: true})
		return a.tasksAnswer(x, x.Success, x.Message, x.Error, func() {
			left := x.Details
			for i, group := range x.ParallelGroups {
				fmt.Fprintf(a.stdout, "wave %d\n", i+1)
				n := min(len(group), len(left))
				a.details(left[:n], false)
				left = left[n:]
			}
		})
	})
	critical := a.dagSub("critical", "Show the longest chain of tasks", 0, func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		x := g.CriticalPath(ctx, taskgraph.CriticalPathRequest{ChannelID: channel, Details: true})
		return a.tasksAnswer(x, x.Success, x.Message, x.Error, func() {
			a.details(x.Details, false)
			if x.TotalHours != nil && *x.TotalHours > 0 {
				fmt.Fprintf(a.stdout, "%s hours of work remain on the way to the end\n", strconv.FormatFloat(*x.TotalHours, 'f', -1, 64))
			}
		})
	})
	stats := a.dagSub("stats", "Count tasks and dependencies", 0, func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		return a.dagStats(ctx, g, channel)
	})
	blocking := a.dagSub("blocking TASK", "Show what a task waits for", 1, func(ctx context.Context, g *taskgraph.Tools, args []string) error {
		x := g.Blocking(ctx, taskgraph.BlockingRequest{ChannelID: channel, TaskID: args[0], Details: true})
		return a.tasksAnswer(x, x.Success, x.Message, x.Error, func() { a.details(x.Details, false) })
	})
	var format string
	graph := a.dagSub("graph", "Draw the tasks and their dependencies", 0, func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		return a.dagGraph(ctx, g, channel, format)
	})
	addFormat(graph, &format)
	cmd.AddCommand(ready, order, groups, critical, stats, blocking, a.dagUnblocksCommand(&channel), graph)
	return cmd
}

func (a *app) dagStats(ctx context.Context, g *taskgraph.Tools, channel string) error {
	x := g.Stats(ctx, taskgraph.StatsRequest{ChannelID: channel, Details: true})
	return a.tasksAnswer(x, x.Success, x.Message, x.Error, func() {
		if n := x.Stats; n != nil {
			a.rows([][]string{
				{"tasks", fmt.Sprintf("%d: %d ready, %d blocked (%d of them in progress), %d completed", n.NodeCount, n.ReadyTaskCount, n.BlockedTaskCount, n.InProgressTaskCount, n.CompletedTaskCount)},
				{"dependencies", fmt.Sprintf("%d: %.2f a task", n.EdgeCount, n.AverageInDegree)},
				{"ends", fmt.Sprintf("%d tasks depend on none, none depends on %d", n.RootCount, n.LeafCount)},
				{"depth", fmt.Sprintf("%d tasks in a row", n.MaxDepth)},
			})
		}
		for _, w := range x.Warnings {
			fmt.Fprintln(a.stdout, cut("warning: "+plain(w.Message), minWidth))
		}
	})
}

func (a *app) dagGraph(ctx context.Context, g *taskgraph.Tools, channel, format string) error {
	if a.json {
		format = task.FormatJSON
	}
	text, err := g.Draw(ctx, channel, format)
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); format == task.FormatASCII {
			line = cut(line, a.columns())
		}
		fmt.Fprintln(a.stdout, line)
	}
	return nil
}

func addFormat(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVar(format, "format", task.FormatASCII, "one of {"+strings.Join(task.Formats(), ",")+"}")
}

func (a *app) dagSub(use, short string, args int, fn func(context.Context, *taskgraph.Tools, []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(args),
		RunE: a.withTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error { return fn(ctx, t.Graph, args) }),
	}
}

// tasksAnswer prints an answer as JSON or by show, with its message below; one
// without success is an error.
func (a *app) tasksAnswer(answer any, success bool, message, detail string, show func()) error {
	if !success {
		if detail != "" {
			message += ": " + detail
		}
		return fmt.Errorf("%s", message)
	}
	if a.json {
		return a.printJSON(answer)
	}
	show()
	fmt.Fprintln(a.stderr, styleOf(a.stderr).paint(dim, cut(message, minWidth)))
	return nil
}

// details prints a line for each task; why says with its reason.
func (a *app) details(list []taskgraph.Detail, why bool) {
	rows := [][]string{}
	for _, d := range list {
		text := plain(d.Title)
		if why && d.Unblocks != nil && *d.Unblocks > 0 {
			text = fmt.Sprintf("%s  (%d wait for it)", text, *d.Unblocks)
		}
		rows = append(rows, []string{plain(d.ID), d.Status, text})
	}
	a.rows(rows)
}
