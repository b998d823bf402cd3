package main

import (
	"context"

	"github.com/spf13/cobra"

	"cairn/internal/workspace"
)

// graphCommand draws the cards, or counts them: dag graph and dag stats in one.
func (a *app) graphCommand() *cobra.Command {
	var stats bool
	var channel, format string
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Draw the cards and what they wait for; the same as dag graph",
		Example: `  cairn graph
  cairn graph --format mermaid
  cairn graph --stats`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = a.withTasks(func(ctx context.Context, t *workspace.Tasks, _ []string) error {
		if stats {
			return a.dagStats(ctx, t.Graph, channel)
		}
		return a.dagGraph(ctx, t.Graph, channel, format)
	})
	cmd.Flags().BoolVar(&stats, "stats", false, "count tasks and dependencies instead")
	cmd.Flags().StringVar(&channel, "channel", "", "cards, or a document such as /plans/a.md (default: dag.channel)")
	addFormat(cmd, &format)
	return cmd
}
