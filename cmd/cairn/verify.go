package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"cairn/internal/base/job"
	"cairn/internal/face/term"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
)

func (a *app) verifyCommand() *cobra.Command {
	var repair bool
	cmd := newCommand("verify", "Read cairn's own files and compare their checksums",
		a.withWorkspace("verify", workspace.Reading, func(ctx context.Context, w *workspace.Workspace, _ []string) error {
			found, err := withProgress(a, func(bar *term.Progress) (*index.Verified, error) {
				bar.Show(job.Progress{Phase: "verifying"})
				return w.Verify(ctx, repair)
			})
			if err != nil {
				return err
			}
			if err := a.out.Print(found, func() { a.out.Verified(found) }); err != nil {
				return err
			}
			if found.Damaged() {
				return errors.New("files are damaged; run `cairn verify --repair`")
			}
			return nil
		}))
	cmd.Flags().BoolVar(&repair, "repair", false, "rebuild or recover what is damaged")
	return cmd
}
