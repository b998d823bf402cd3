package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/index"
	"cairn/internal/term"
	"cairn/retriever"
)

func (a *app) explainCommand() *cobra.Command {
	var f searchFlags
	var candidates int
	cmd := newCommand("explain [flags] QUERY...", "Show every step of one search, and the time of each",
		a.command(func(ctx context.Context, args []string) error {
			w, q, err := a.openSearch(ctx, "explain", strings.Join(args, " "), f)
			if err != nil {
				return err
			}
			defer w.Close()
			r, err := a.refresh(ctx, w, q.Mode, f.wait)
			if err != nil {
				return err
			}
			trace, err := w.Explain(ctx, index.ExplainRequest{Query: q, Candidates: candidates})
			if err != nil {
				return err
			}
			if err := a.print(trace, func(w *term.Writer) { w.Trace(trace) }); err != nil {
				return err
			}
			return r.finish(ctx)
		}))
	f.add(cmd)
	intVar(cmd.Flags(), &candidates, "candidates", 10, 1, retriever.TraceLimit, "number of entries shown of each list, 1 to 100")
	a.addModel(cmd)
	a.addRerank(cmd)
	return cmd
}
