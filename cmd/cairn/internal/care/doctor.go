package care

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/base/job"
	"cairn/internal/face/doctor"
	"cairn/internal/face/term"
	"cairn/internal/face/view"
	"cairn/internal/folder/config"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
)

func (a *app) doctorCommand() *cli.Command {
	var repair bool
	cmd := cli.NewCommand("doctor", "Check the folder and say how to repair what is wrong",
		a.Command(func(ctx context.Context, _ []string) error { return a.doctor(ctx, repair) }))
	cmd.Flags().BoolVar(&repair, "repair", false, "make the obvious repairs")
	return cmd
}

func (a *app) doctor(ctx context.Context, repair bool) error {
	sel, err := a.Selection()
	if err != nil {
		return err
	}
	open := sync.OnceValues(func() (*workspace.Workspace, error) {
		cfg, err := config.Load(sel.Root, os.Environ())
		if err != nil {
			cfg = config.Default() // the error is a finding of its own
		}
		o := workspace.Options{Command: "cairn doctor"}
		if err := a.Model.Apply(&o); err != nil {
			return nil, err
		}
		return workspace.Open(ctx, sel, cfg, workspace.Reading, o)
	})
	r, err := doctor.Check(ctx, sel, doctor.Options{
		Repair: repair, Environ: os.Environ(),
		Index: func(ctx context.Context) (*index.Status, error) {
			w, err := open()
			if err != nil {
				return nil, err
			}
			return index.StatusOp.Call(ctx, w.Folder, index.StatusRequest{Selection: w.Selection()}, nil)
		},
		Verify: func(ctx context.Context, repair bool) (*index.Verified, error) {
			w, err := open()
			if err != nil {
				return nil, err
			}
			return w.Verify(ctx, repair)
		},
	})
	if w, _ := open(); w != nil {
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return err
	}
	if err := a.Out.Print(r, func() { a.Out.Report(r) }); err != nil {
		return err
	}
	if !r.Healthy {
		return fmt.Errorf("%s and %s; each says how to repair it", view.Count(r.Errors, "error"), view.Count(r.Warnings, "warning"))
	}
	return nil
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
