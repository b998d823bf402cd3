package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/workspace"
)

func (a *app) cleanCommand() *cobra.Command {
	var all, try bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove the index; the next search makes it again",
		Long: `Remove the index; the next search makes it again. Cards, configuration, imported
tools and what was learnt from use stay, and so does the cache of embeddings
unless --all is given.`,
		Example: `  cairn clean --dry-run
  cairn clean --all`,
		Args: cobra.NoArgs,
		RunE: a.command(func(ctx context.Context, _ []string) error {
			sel, err := a.selection()
			if err != nil {
				return err
			}
			r, err := workspace.Clean(ctx, sel, "cairn clean", all, try)
			if err != nil {
				return err
			}
			did := "removed"
			if try {
				did = "would be removed"
			}
			return a.printLine(r, "%s %s, %.1f MB", cmp.Or(strings.Join(r.Removed, ", "), "nothing"), did, float64(r.Bytes)/1e6)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove the cache of embeddings, too")
	cmd.Flags().BoolVarP(&try, "dry-run", "d", false, "print what would be removed, and remove nothing")
	return cmd
}
