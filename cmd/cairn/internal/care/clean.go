package care

import (
	"cmp"
	"context"
	"strings"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/folder/workspace"
)

func (a *app) cleanCommand() *cli.Command {
	var all, try, orphans bool
	cmd := cli.NewCommand("clean", "Remove the index; the next search rebuilds it",
		a.Command(func(ctx context.Context, _ []string) error {
			r, err := a.clean(ctx, orphans, all, try)
			if err != nil {
				return err
			}
			did := "removed"
			if try {
				did = "would be removed"
			}
			return a.Out.Line(r, "%s %s, %.1f MB", cmp.Or(strings.Join(r.Removed, ", "), "nothing"), did, float64(r.Bytes)/1e6)
		}))
	cmd.Flags().BoolVar(&all, "all", false, "also remove the cache of embeddings; with --orphans, the records")
	cmd.Flags().BoolVar(&orphans, "orphans", false, "remove the indexes of folders that no longer exist")
	cmd.Flags().BoolVarP(&try, "dry-run", "d", false, "only print what would be removed")
	return cmd
}

func (a *app) clean(ctx context.Context, orphans, all, try bool) (*workspace.CleanReport, error) {
	if orphans {
		return workspace.CleanOrphans(ctx, "cairn clean", all, try)
	}
	sel, err := a.Selection()
	if err != nil {
		return nil, err
	}
	return workspace.Clean(ctx, sel, "cairn clean", all, try)
}
