package folder

import (
	"context"
	"os"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/term"
	"cairn/internal/folder/index"
	"cairn/internal/folder/mirror"
	"cairn/internal/folder/workspace"
)

func (a *app) storeCommand() *cli.Command {
	var from, to string
	copying := cli.NewCommand("copy --from flat --to qdrant://HOST:6334/COLLECTION", "Copy an index without embedding again; resume an interrupted copy",
		a.Command(func(ctx context.Context, _ []string) error {
			address, run := to, workspace.CopyOut
			if to == "flat" {
				address, run = from, workspace.CopyIn
			}
			if (from == "flat") == (to == "flat") || from == "" || to == "" {
				return cli.BadUsage("--from %q --to %q: want flat on one side and qdrant://HOST:6334/COLLECTION on the other", from, to)
			}
			store, err := mirror.ParseStore(address, os.Getenv)
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			sel, cfg, err := a.Choose()
			if err != nil {
				return err
			}
			o := workspace.Options{Settings: index.Settings{Logger: a.Logger()}, Command: "cairn store copy"}
			if err := a.Model.Apply(&o); err != nil {
				return err
			}
			report, err := cli.WithProgress(a.App, func(bar *term.Progress) (*workspace.CopyReport, error) {
				return run(ctx, sel, cfg, store, o, bar.Show)
			})
			if err != nil {
				return err
			}
			return a.Out.Line(report, "%d documents in %d chunks, %d copied now, %d removed, nothing embedded; %d queries have %.3f of their best ten in common; %.1f s",
				report.Documents, report.Chunks, report.Copied, report.Removed, report.Probes, report.Overlap, report.Seconds)
		}))
	copying.Flags().StringVar(&from, "from", "", "flat, or the address of a store")
	copying.Flags().StringVar(&to, "to", "", "flat, or the address of a store")
	a.AddModel(copying)
	return cli.Group("store", "Move an index between this machine and a Qdrant server", copying)
}
