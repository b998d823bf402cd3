package search

import (
	"context"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/folder/bundle"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/retriever"
)

func (a *app) refsCommand() *cli.Command {
	var r bundle.ReferencesRequest
	cmd := cli.NewCommand("refs [flags] SYMBOL", "Print who calls or uses a symbol of source code",
		a.Command(func(ctx context.Context, args []string) error {
			r.Symbol = args[0]
			f := searchFlags{Query: retriever.Query{Mode: retriever.Keyword}, wait: cli.AnyWait}
			return a.answerSearch(ctx, "refs", f, func(ctx context.Context, w *workspace.Workspace, _ retriever.Query) error {
				found, err := index.ReferencesOp.Call(ctx, w.Folder, r, nil)
				if err != nil {
					return err
				}
				a.Found(len(found.Definitions)+len(found.References) > 0)
				return a.Out.Print(found, func() { a.Out.Printf("%s\n", found.Text()) })
			})
		}))
	cmd.Args = func(_ *cli.Command, args []string) error {
		if len(args) != 1 {
			return cli.BadUsage("got %d symbols, want one, as in: cairn refs Index.Search", len(args))
		}
		return nil
	}
	cli.IntVar(cmd.Flags(), &r.Limit, "limit", bundle.DefaultReferences, 1, bundle.MaxReferences, "most references")
	return a.Searches(cmd)
}
