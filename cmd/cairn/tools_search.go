package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"cairn/internal/toolsearch"
	"cairn/internal/workspace"
)

func (a *app) toolsSearchCommand() *cobra.Command {
	var limit int
	var inUse []string
	var explain bool
	cmd := &cobra.Command{
		Use:     "search [flags] QUERY",
		Short:   "Find tools of the catalogue by what they do",
		Example: `  cairn tools search --context filesystem:read "parse a configuration"`,
		Args:    cobra.ExactArgs(1),
		RunE: a.withToolbox(func(ctx context.Context, box *workspace.Toolbox, args []string) error {
			if limit < 1 || limit > toolsearch.MaxLimit {
				return usage("--limit %d, want 1 to %d", limit, toolsearch.MaxLimit)
			}
			q := toolsearch.Query{Text: args[0], Limit: limit, Explain: explain}
			for _, name := range inUse {
				t, err := box.Catalog.Lookup(name)
				if err != nil {
					return err
				}
				q.ContextTools = append(q.ContextTools, t.ID)
			}
			x, err := a.toolIndex(ctx, box)
			if err != nil {
				return err
			}
			answer, err := x.Search(ctx, q)
			if err != nil {
				return err
			}
			return a.printTools(answer)
		}),
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", toolsearch.DefaultLimit, "most tools")
	cmd.Flags().StringSliceVar(&inUse, "context", nil, "tools in use, which make what is used with them rank higher")
	cmd.Flags().BoolVar(&explain, "explain", false, "say what each score is made of")
	a.model.add(cmd)
	return cmd
}

// toolIndex is the toolbox's index, with progress on standard error.
func (a *app) toolIndex(ctx context.Context, box *workspace.Toolbox) (*toolsearch.Index, error) {
	var o workspace.Options
	if err := a.model.apply(&o); err != nil {
		return nil, err
	}
	box.UseModel(o.Description, o.Model)
	p := a.newProgress()
	defer p.end()
	return box.Index(ctx, p.show)
}

func (a *app) printTools(answer *toolsearch.Answer) error {
	if a.json {
		return a.printJSON(answer)
	}
	for _, missing := range answer.Degraded {
		fmt.Fprintf(a.stderr, "cairn: warning: without %s\n", missing)
	}
	if answer.Message != "" {
		fmt.Fprintln(a.stderr, answer.Message)
	}
	for _, t := range answer.Tools {
		if _, err := fmt.Fprintf(a.stdout, "%.3f  %s  %s\n", t.Score, plain(t.ID), cut(oneLine(t.Description), 100)); err != nil {
			return err
		}
		if e := t.Explain; e != nil {
			fmt.Fprintf(a.stdout, "       %.3f = 0.8·%.3f + 0.2·%.3f pagerank + %.3f memory + %.3f transition + %.3f closure; hybrid %.3f (alpha %.2f), graph %.3f\n",
				e.Score, e.Final, e.PageRank, e.Memory, e.Transition, e.Closure, e.Hybrid, e.Alpha, e.Graph)
		}
	}
	for _, m := range answer.Remembered {
		fmt.Fprintf(a.stdout, "like %q (%.2f)\n", plain(m.Intent), m.Similarity)
	}
	return nil
}
