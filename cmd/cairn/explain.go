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
	cmd := &cobra.Command{
		Use:   "explain [flags] QUERY...",
		Short: "Show every step of one search, and the time of each",
		Long: `Show every step of one search: the terms looked for, how the query became a vector,
what each leg found with its raw score and its share, the blend, what the graph
of common use moved, what was left out and why, how a token budget was spent, and
the time of each step. The search is the same as that of cairn search. If another
process owns the folder, that process does the search.`,
		Example: `  cairn explain "how do I rotate a token"
  cairn explain --mode keyword --candidates 3 'retry_after_seconds'
  cairn explain --json --max-tokens 2000 backup`,
		RunE: a.command(func(ctx context.Context, args []string) error {
			return a.explain(ctx, strings.Join(args, " "), f, candidates)
		}),
	}
	f.add(cmd)
	intVar(cmd.Flags(), &candidates, "candidates", 10, 1, retriever.TraceLimit, "number of entries shown of each list, 1 to 100")
	a.addModel(cmd)
	a.addRerank(cmd)
	return cmd
}

func (a *app) explain(ctx context.Context, text string, f searchFlags, candidates int) error {
	w, q, err := a.openSearch(ctx, "explain", text, f)
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
}
