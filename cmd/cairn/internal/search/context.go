package search

import (
	"context"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/folder/bundle"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/retriever"
)

func (a *app) contextCommand() *cli.Command {
	var f searchFlags
	var card string
	budget := bundle.DefaultBudget
	cmd := cli.NewCommand("context [flags] QUESTION...", "Print what to read before a change: sections, symbols and commits within a budget",
		a.searching("context", &f, func(ctx context.Context, w *workspace.Workspace, q retriever.Query) error {
			r := bundle.Request{Query: q.Text}
			if card != "" {
				t, err := w.Tasks(&workspace.TaskOptions{Person: true})
				if err != nil {
					return err
				}
				defer t.Close()
				if r, err = t.ContextRequest(card); err != nil {
					return err
				}
			}
			r.Context, r.Mode, r.Filter, r.Budget, r.AsText = q.Context, q.Mode, q.Filter, budget, !a.Out.JSON
			b, err := index.ContextOp.Call(ctx, w.Folder, r, nil)
			if err == nil {
				err = a.foundIn(w, f.Filter.PathPrefix, len(b.Items))
			}
			if err != nil {
				return err
			}
			return a.Out.Print(b, func() { a.Out.Printf("%s\n", b.Text()) })
		}))
	f.addScope(a, cmd)
	checkQuery := cmd.Args
	cmd.Args = func(c *cli.Command, args []string) error {
		switch {
		case card == "":
			return checkQuery(c, args)
		case len(args) > 0:
			return cli.BadUsage("give either a question or --card")
		}
		return nil
	}
	fs := cmd.Flags()
	fs.StringVar(&card, "card", "", "ID of the task card, instead of a question")
	cli.IntVar(fs, &budget, "budget", bundle.DefaultBudget, bundle.MinBudget, bundle.MaxBudget, "most tokens of the whole answer")
	return a.Searches(cmd)
}
