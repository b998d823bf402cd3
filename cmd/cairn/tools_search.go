package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/job"
	"cairn/internal/term"
	"cairn/internal/toolbox"
	"cairn/internal/toolsearch"
)

func (a *app) toolsSearchCommand() *cobra.Command {
	limit := toolsearch.DefaultLimit
	var inUse []string
	var explain bool
	var wait time.Duration
	cmd := newCommand("search [flags] QUERY", "Search the catalogue for tools by what they do",
		a.withToolbox(func(ctx context.Context, box *toolbox.Toolbox, args []string) error {
			if strings.TrimSpace(args[0]) == "" {
				return badUsage("want a QUERY, such as \"open an issue\"")
			}
			inUse, err := toolIDs(ctx, box, inUse)
			if err != nil {
				return err
			}
			if err := a.prepareTools(ctx, box, wait); err != nil {
				return err
			}
			answer, err := box.Search(ctx, toolsearch.Query{Text: args[0], Limit: limit, Explain: explain, ContextTools: inUse}, nil)
			if err != nil {
				return err
			}
			return a.print(answer, func(w *term.Writer) {
				for _, missing := range answer.Degraded {
					a.stderr.Warn("without %s", missing)
				}
				if answer.Message != "" {
					a.stderr.Printf("%s\n", answer.Message)
				}
				w.FoundTools(answer)
			})
		}))
	cmd.Flags().VarP(&boundedInt{&limit, 1, toolsearch.MaxLimit}, "limit", "n", "most tools to list")
	cmd.Flags().StringSliceVar(&inUse, "context", nil, "tools in use; tools used with them rank higher")
	addWait(cmd, &wait)
	cmd.Flags().BoolVar(&explain, "explain", false, "show the components of each score")
	a.addModel(cmd)
	return cmd
}

// toolIDs returns the IDs of the named tools.
func toolIDs(ctx context.Context, box *toolbox.Toolbox, names []string) ([]string, error) {
	var ids []string
	for _, name := range names {
		t, err := box.Lookup(ctx, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, t.ID)
	}
	return ids, nil
}

// addWait adds the flag that bounds the wait for vectors.
func addWait(cmd *cobra.Command, wait *time.Duration) {
	cmd.Flags().DurationVar(wait, "wait", 30*time.Second, "longest wait for missing vectors; then keywords answer")
}

// minWordsShown and minToolsShown are the numbers of tools from which on progress
// with their words and their vectors is shown. With fewer, the answer is as fast.
const minWordsShown, minToolsShown = 2000, 100

// prepareTools makes the vectors that can be made within wait. Without a model the
// search is by keyword.
func (a *app) prepareTools(ctx context.Context, box *toolbox.Toolbox, wait time.Duration) error {
	var p *toolbox.Prepared
	err := a.withProgress(func(bar *term.Progress) (err error) {
		p, err = box.Prepare(ctx, wait, func(step job.Progress) {
			if step.Total >= minToolsShown && (step.Phase != toolsearch.KeywordsPhase || step.Total >= minWordsShown) {
				bar.Show(step)
			}
		})
		return err
	})
	switch {
	case err != nil:
		return err
	case p.TimedOut:
		a.stderr.Printf("answering after %s with the vectors made so far; `cairn tools import` or a longer --wait makes the rest\n", wait)
	case p.Failure != "":
		a.stderr.Warn("answering by keyword alone: %s", p.Failure)
	}
	return nil
}
