package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"cairn/internal/face/term"
	"cairn/internal/folder/workspace"
)

func (a *app) migrateCommand() *cobra.Command {
	return newCommand("migrate", "Import what an earlier version kept in .cairn/index, and remove that",
		a.withWorkspace("migrate", workspace.Reading, func(ctx context.Context, w *workspace.Workspace, _ []string) error {
			r, err := w.Migrate(ctx)
			if err != nil {
				return err
			}
			for _, line := range r.Damaged {
				a.stderr.Warn("%s; .cairn/index is kept", line)
			}
			line := "there is nothing to import"
			if r.Found {
				line = fmt.Sprintf("imported %s", term.Count(r.Records, "record"))
				if r.Embeddings {
					line += " and the embeddings"
				}
				line += "; next: cairn index"
			}
			return a.printLine(r, "%s", line)
		}))
}
