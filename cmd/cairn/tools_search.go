package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/toolsearch"
	"cairn/internal/workspace"
)

func (a *app) toolsSearchCommand() *cobra.Command {
	var limit int
	var inUse []string
	var explain bool
	var wait time.Duration
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
			x, err := a.toolIndex(ctx, box, wait)
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
	addWait(cmd, &wait)
	cmd.Flags().BoolVar(&explain, "explain", false, "say what each score is made of")
	a.model.add(cmd)
	return cmd
}

// addWait adds the flag of how long an answer may wait for vectors.
func addWait(cmd *cobra.Command, wait *time.Duration) {
	cmd.Flags().DurationVar(wait, "wait", 30*time.Second, "longest wait for vectors that have yet to be made; then keywords answer")
}

// toolIndex is the toolbox's index, with the vectors that can be made within
// wait and progress on standard error. Without a model it searches by keywords.
func (a *app) toolIndex(ctx context.Context, box *workspace.Toolbox, wait time.Duration) (*toolsearch.Index, error) {
	if err := a.useModel(box); err != nil {
		return nil, err
	}
	p := a.newProgress()
	defer p.end()
	if _, err := box.Index(ctx, p.show); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := box.WaitVectors(limited, p.show)
	p.end()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Fprintf(a.stderr, "answering after %s with the vectors made so far; `cairn tools import` or a longer --wait makes the rest\n", wait)
	case err != nil:
		fmt.Fprintf(a.stderr, "cairn: warning: answering by keywords: %s\n", plain(err.Error()))
	}
	return box.Index(ctx, nil)
}

// useModel gives the toolbox the model of the flags.
func (a *app) useModel(box *workspace.Toolbox) error {
	var o workspace.Options
	if err := a.model.apply(&o); err != nil {
		return err
	}
	box.UseModel(o.Description, o.Model)
	return nil
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
