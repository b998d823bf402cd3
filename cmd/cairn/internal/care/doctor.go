// Package care holds the commands that check, repair and back up.
package care

import (
	"context"
	"errors"
	"fmt"
	"os"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/job"
	"cairn/internal/face/doctor"
	"cairn/internal/face/term"
	"cairn/internal/face/view"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
)

// app adds the commands of this package to cli.App.
type app struct{ *cli.App }

// Commands returns the commands in the order of the help.
func Commands(c *cli.App) []*cli.Command {
	a := &app{c}
	return []*cli.Command{a.doctorCommand(), a.Searches(a.driftCommand()), a.verifyCommand(), a.backupCommand(), a.restoreCommand(), a.exportCommand(), a.importCommand(), a.cleanCommand(), a.upgradeCommand()}
}

func (a *app) doctorCommand() *cli.Command {
	var repair bool
	cmd := cli.NewCommand("doctor", "Check the folder and say how to repair what is wrong",
		a.Command(func(ctx context.Context, _ []string) error {
			a.Lenient = true // the report has what is wrong with the configuration
			sel, _, o, err := a.Options("doctor")
			if err != nil {
				return err
			}
			r, err := doctor.Check(ctx, sel, doctor.Options{Repair: repair, Environ: os.Environ(), Workspace: &o})
			if err != nil {
				return err
			}
			show := func() {
				a.Out.Report(r)
				if n := len(r.OldModules); n > 0 {
					a.Out.Notes.Printf("cairn uses %s without a release for two years; --json lists them\n", view.Count(n, "module"))
				}
			}
			if err := a.Out.Print(r, show); err != nil {
				return err
			}
			if !r.Healthy {
				return fmt.Errorf("%s and %s; each says how to repair it", view.Count(r.Errors, "error"), view.Count(r.Warnings, "warning"))
			}
			return nil
		}))
	cmd.Flags().BoolVar(&repair, "repair", false, "make the obvious repairs")
	return cmd
}

func (a *app) verifyCommand() *cli.Command {
	var repair bool
	cmd := cli.NewCommand("verify", "Read cairn's own files and compare their checksums",
		a.WithWorkspace("verify", workspace.Reading, func(ctx context.Context, w *workspace.Workspace, _ []string) error {
			found, err := cli.WithProgress(a.App, func(bar *term.Progress) (*index.Verified, error) {
				bar.Show(job.Progress{Phase: "verifying"})
				return w.Verify(ctx, repair)
			})
			if err != nil {
				return err
			}
			if err := a.Out.Print(found, func() { a.Out.Verified(found) }); err != nil {
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
