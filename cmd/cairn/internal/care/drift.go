package care

import (
	"context"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/drift"
	"cairn/internal/folder/workspace"
)

func (a *app) driftCommand() *cli.Command {
	var o drift.Options
	var accept, ignore []string
	var reason string
	var card bool
	cmd := cli.NewCommand("drift [flags]", "Find statements of documents that the folder contradicts",
		a.WithTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			if len(accept)+len(ignore) > 0 && reason == "" {
				return cli.BadUsage("--accept and --ignore need a --reason")
			}
			sel, err := a.Selection()
			if err != nil {
				return err
			}
			report, err := drift.Check(ctx, sel.Root, t, o)
			if err != nil {
				return err
			}
			if err := report.Judge(ctx, sel.Root, t, drift.Accepted, accept, reason); err != nil {
				return err
			}
			if err := report.Judge(ctx, sel.Root, t, drift.Ignored, ignore, reason); err != nil {
				return err
			}
			if card {
				if report.Opened, err = report.Cards(ctx, t); err != nil {
					return err
				}
			}
			a.Found(len(report.Findings) == 0)
			return a.Out.Print(report, func() { a.Out.Lines(report.Text()) })
		}))
	fs := cmd.Flags()
	fs.StringVar(&o.Since, "since", "", "only what came to differ after this commit, branch or tag")
	fs.BoolVar(&o.All, "all", false, "also what no commit proves")
	fs.StringSliceVar(&accept, "accept", nil, "ID of a finding that is right but stays; may be repeated")
	fs.StringSliceVar(&ignore, "ignore", nil, "ID of a finding that is wrong; may be repeated")
	fs.StringVar(&reason, "reason", "", "reason for --accept and --ignore")
	fs.BoolVar(&card, "card", false, "create a card for each finding")
	return cmd
}
