package main

import (
	"context"

	"github.com/spf13/cobra"

	"cairn/internal/base/home"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
)

func (a *app) statusCommand() *cobra.Command {
	var list bool
	cmd := newCommand("status", "Print which folder is chosen and the state of its index",
		a.withWorkspace("status", workspace.Reading, func(ctx context.Context, w *workspace.Workspace, _ []string) error {
			s, err := index.StatusOp.Call(ctx, w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
			if err != nil {
				return err
			}
			full := struct {
				*index.Status
				home.Place
				SkippedFiles []index.SkippedFile `json:"skipped_files,omitempty"`
			}{Status: s, Place: w.Place()}
			if list {
				if full.SkippedFiles, err = index.SkippedOp.Call(ctx, w.Folder, struct{}{}, nil); err != nil {
					return err
				}
			}
			return a.out.Print(full, func() { a.out.Status(s, full.Place, full.SkippedFiles) })
		}))
	cmd.Flags().BoolVar(&list, "skipped", false, "list the files that are not indexed, by reason")
	return cmd
}
