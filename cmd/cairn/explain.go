package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/index"
	"cairn/internal/term"
	"cairn/internal/workspace"
	"cairn/retriever"
)

func (a *app) explainCommand() *cobra.Command {
	var f searchFlags
	var candidates int
	cmd := newCommand("explain [flags] QUERY...", "Show every step of one search, and the time of each",
		a.command(func(ctx context.Context, args []string) error {
			return a.answerSearch(ctx, "explain", strings.Join(args, " "), f, func(w *workspace.Workspace, q retriever.Query) error {
				trace, err := w.Explain(ctx, index.ExplainRequest{Query: q, Candidates: candidates})
				if err != nil {
					return err
				}
				return a.print(trace, func(w *term.Writer) { w.Trace(trace) })
			})
		}))
	f.add(cmd)
	intVar(cmd.Flags(), &candidates, "candidates", 10, 1, retriever.TraceLimit, "number of entries shown of each list, 1 to 100")
	a.addModel(cmd)
	a.addRerank(cmd)
	return cmd
}
