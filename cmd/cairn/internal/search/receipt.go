package search

import (
	"context"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/text/receipt"
	"cairn/retriever"
)

func (a *app) receiptCommand() *cli.Command {
	cmd := cli.NewCommand("receipt PLACE...", "Print receipts, which cite lines of documents by their content",
		a.WithWorkspace("receipt", workspace.Reading, func(ctx context.Context, w *workspace.Workspace, args []string) error {
			t, err := w.Tasks(&workspace.TaskOptions{Person: true})
			if err != nil {
				return err
			}
			defer t.Close()
			made := make([]receipt.Full, len(args))
			for i, path := range a.Paths(w.Selection()).Documents(args) {
				r, err := index.ReadOp.Call(ctx, w.Folder, retriever.ReadRequest{Path: path}, nil)
				if err != nil {
					return a.readError(err)
				}
				lines := r.LineRange
				if lines == nil {
					return cli.BadUsage("%s is a whole document; name a section or lines, as in: cairn receipt 'guide.md#install' guide.md:10-14", args[i])
				}
				anchor := ""
				if r.Anchor != nil {
					anchor = *r.Anchor
				}
				if made[i], err = t.Receipt(r.Path, anchor, lines.Start, lines.End); err != nil {
					return err
				}
			}
			return a.Out.Print(made, func() {
				for _, r := range made {
					a.Out.Printf("%s\n", r.Receipt)
				}
			})
		}))
	cmd.ValidArgsFunction = a.Completion(a.completePlace)
	return cmd
}

func (a *app) checkCommand() *cli.Command {
	var fix bool
	cmd := cli.NewCommand("check [flags] [DOCUMENT...]", "Check whether the lines that documents cite by receipts are the same",
		a.WithTasks(func(ctx context.Context, t *workspace.Tasks, args []string) error {
			sel, err := a.Selection()
			if err != nil {
				return err
			}
			report, err := t.CheckReceipts(ctx, a.Paths(sel).Documents(args), fix)
			if err != nil {
				return err
			}
			a.Found(report.Holds())
			return a.Out.Print(report, func() { a.Out.Lines(report.Text()) })
		}))
	cmd.Flags().BoolVar(&fix, "fix", false, "write the present places of moved lines into the documents")
	return cmd
}
