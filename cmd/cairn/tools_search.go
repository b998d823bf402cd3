package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
				return badUsage("--limit %d, want 1 to %d", limit, toolsearch.MaxLimit)
			}
			if strings.TrimSpace(args[0]) == "" {
				return badUsage("want a QUERY, such as \"open an issue\"")
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

// shownWords and shownTools are from how many tools on it is shown before an answer
// how their words and their vectors come along: with fewer the answer is there as
// soon.
const shownWords, shownTools = 2000, 100

// toolIndex is the toolbox's index, with the vectors that can be made within
// wait and progress on standard error. Without a model it searches by keywords.
func (a *app) toolIndex(ctx context.Context, box *workspace.Toolbox, wait time.Duration) (*toolsearch.Index, error) {
	if err := a.useModel(box); err != nil {
		return nil, err
	}
	p := a.newProgress()
	defer p.end()
	show := func(step workspace.Progress) {
		if step.Total >= shownTools && (step.Phase != "tools keywords" || step.Total >= shownWords) {
			p.show(step)
		}
	}
	if _, err := box.Index(ctx, show); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := box.WaitVectors(limited, show)
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
	width := styleOf(a.stdout).width
	for _, t := range answer.Tools {
		if _, err := fmt.Fprintln(a.stdout, cut(fmt.Sprintf("%.3f  %-30s  %s", t.Score, plain(t.ID), oneLine(t.Description)), width)); err != nil {
			return err
		}
		if t.Explain != nil {
			for _, line := range wrap(explainTool(t.Explain), width-7) {
				fmt.Fprintln(a.stdout, "       "+line)
			}
		}
	}
	for _, m := range answer.Remembered {
		fmt.Fprintln(a.stdout, cut(fmt.Sprintf("like %q (%.2f)", plain(m.Intent), m.Similarity), width))
	}
	return nil
}

// explainTool says what a score is made of, without what adds nothing.
func explainTool(c *toolsearch.Candidate) string {
	text := fmt.Sprintf("= 0.8·%.3f", c.Final)
	for _, term := range []struct {
		name         string
		share, value float64
	}{{"pagerank", 0.2, c.PageRank}, {"memory", 1, c.Memory}, {"transition", 1, c.Transition}, {"closure", 1, c.Closure}} {
		switch {
		case term.value == 0:
		case term.share == 1:
			text += fmt.Sprintf(" + %.3f %s", term.value, term.name)
		default:
			text += fmt.Sprintf(" + %.1f·%.3f %s", term.share, term.value, term.name)
		}
	}
	text += fmt.Sprintf("; hybrid %.3f", c.Hybrid)
	if c.Alpha < 1 {
		text += fmt.Sprintf(" by %.2f, graph %.3f by %.2f", c.Alpha, c.Graph, 1-c.Alpha)
	}
	if c.Injected > 0 {
		text += fmt.Sprintf(", at least %.3f from the graph", c.Injected)
	}
	return text
}
