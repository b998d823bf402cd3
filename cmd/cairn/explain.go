package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/face/term"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/retriever"
)

func (a *app) explainCommand() *cobra.Command {
	var f searchFlags
	var candidates int
	cmd := newCommand("explain [flags] QUERY...", "Show every step of one search, and the time of each",
		a.command(func(ctx context.Context, args []string) error {
			f.Text = strings.Join(args, " ")
			return a.answerSearch(ctx, "explain", f, func(w *workspace.Workspace, q retriever.Query) error {
				return term.Show(a.out, (*term.Output).Trace)(index.ExplainOp.Call(ctx, w.Folder, index.ExplainRequest{Query: q, Candidates: candidates}, nil))
			})
		}))
	f.add(a, cmd)
	intVar(cmd.Flags(), &candidates, "candidates", 10, 1, retriever.TraceLimit, "entries to show per list, 1 to 100")
	return cmd
}
