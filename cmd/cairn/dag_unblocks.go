package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"cairn/internal/task/taskgraph"
)

// dagUnblocksCommand ranks tasks by what waits for them. channel is the flag of
// the command above.
func (a *app) dagUnblocksCommand(channel *string) *cobra.Command {
	var limit int
	cmd := a.dagSub("unblocks", "Rank the open tasks by how much work waits for them", 0, func(ctx context.Context, g *taskgraph.Tools, _ []string) error {
		list, err := g.Leverage(ctx, *channel, limit)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(append([]taskgraph.Detail{}, list...))
		}
		rows := [][]string{}
		for _, d := range list {
			waits := ""
			if d.Unblocks != nil {
				waits = fmt.Sprintf("%d wait", *d.Unblocks)
			}
			rows = append(rows, []string{plain(d.ID), d.Status, waits, plain(d.Title)})
		}
		if len(rows) == 0 {
			fmt.Fprintln(a.stderr, "no open tasks")
		}
		a.rows(rows)
		return nil
	})
	cmd.Long = `Rank the open tasks by how much work waits for them, directly or through others:
PageRank over the dependencies that are not done. What stands first, once it is
finished, lets most of the rest go on.`
	cmd.Flags().IntVar(&limit, "limit", 10, "most tasks to list")
	old := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := old(cmd, args); err != nil {
			return err
		}
		return inRange(cmd, bounds{"limit", 1, noBound})
	}
	return cmd
}
