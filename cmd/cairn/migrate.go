package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"cairn/internal/term"
	"cairn/internal/workspace"
)

func (a *app) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Take over what an earlier version has kept in .cairn/index, and remove that",
		Long: `Take over what an earlier version has kept in .cairn/index, and remove that: the
imported tools, what was learnt from use, question tasks and embeddings. What this
version has already stays, and the rest of the index is built again. Remove
.cairn/index instead if it came with the folder.`,
		Example: "  cairn migrate",
		Args:    cobra.NoArgs,
		RunE: a.command(func(ctx context.Context, _ []string) error {
			w, err := a.open(ctx, "migrate", workspace.Reading, nil)
			if err != nil {
				return err
			}
			r, err := w.Migrate(ctx)
			if err := errors.Join(err, w.Close()); err != nil {
				return err
			}
			for _, line := range r.Damaged {
				a.stderr.Warn("%s; .cairn/index is kept", line)
			}
			line := "nothing to take over"
			if r.Found {
				line = fmt.Sprintf("took over %s", term.Count(r.Records, "record"))
				if r.Embeddings {
					line += " and the embeddings"
				}
				line += "; next: cairn index"
			}
			return a.printLine(r, "%s", line)
		}),
	}
}
