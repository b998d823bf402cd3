package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/workspace"
)

func (a *app) cleanCommand() *cobra.Command {
	var all, try bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove the index, which the next search makes anew",
		Long: `Remove the index, which the next search makes anew. Cards, configuration, imported
tools and what was learnt from use stay, and so does the cache of embeddings
unless --all is given.`,
		Example: `  cairn clean --dry-run
  cairn clean --all`,
		Args: cobra.NoArgs,
		RunE: a.command(func(ctx context.Context, _ []string) error {
			sel, err := workspace.Select(workspace.SelectOptions{Flag: a.dir})
			if err != nil {
				return err
			}
			r, err := workspace.Clean(ctx, sel, "cairn clean", all, try)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(r)
			}
			what, did := strings.Join(r.Removed, ", "), "removed"
			if what == "" {
				what = "nothing"
			}
			if try {
				did = "would be removed"
			}
			_, err = fmt.Fprintf(a.stdout, "%s %s, %.1f MB\n", what, did, float64(r.Bytes)/1e6)
			return err
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "the cache of embeddings too")
	cmd.Flags().BoolVarP(&try, "dry-run", "d", false, "only say what would be removed")
	return cmd
}
