package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/index"
	"cairn/internal/job"
	"cairn/internal/term"
	"cairn/internal/workspace"
)

func (a *app) verifyCommand() *cobra.Command {
	var repair bool
	cmd := newCommand("verify", "Read all files that cairn keeps and compare their checksums",
		a.withWorkspace("verify", workspace.Reading, func(ctx context.Context, w *workspace.Workspace, _ []string) error {
			var found *index.Verified
			err := a.withProgress(func(bar *term.Progress) (err error) {
				bar.Show(job.Progress{Phase: "verifying"})
				found, err = w.Verify(ctx, repair)
				return err
			})
			if err != nil {
				return err
			}
			if err := a.print(found, func(out *term.Writer) { printVerified(out, found) }); err != nil {
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

func printVerified(out *term.Writer, found *index.Verified) {
	for _, f := range found.Files {
		state := "ok"
		switch {
		case f.Repaired != "":
			state = "repaired"
		case len(f.Problems) > 0:
			state = "DAMAGED"
		}
		out.Printf("%-8s  %-14s %8.1f MB\n", state, term.Plain(f.Name), float64(f.Bytes)/1e6)
		for _, problem := range f.Problems {
			out.Printf("          %s\n", term.Plain(problem))
		}
		if f.Repaired != "" {
			out.Printf("          %s\n", term.Plain(strings.TrimSpace(f.Repaired)))
		}
	}
	if len(found.Files) == 0 {
		out.Printf("there is nothing to verify: the folder has no index and no records\n")
	}
}
