package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/job"
	"cairn/internal/term"
	"cairn/internal/toolbox"
	"cairn/internal/toolsearch"
	"cairn/internal/workspace"
)

func (a *app) toolsSearchCommand() *cobra.Command {
	limit := toolsearch.DefaultLimit
	var inUse []string
	var explain bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:     "search [flags] QUERY",
		Short:   "Search the catalogue for tools by what they do",
		Example: `  cairn tools search --context filesystem:read "parse a configuration"`,
		Args:    cobra.ExactArgs(1),
		RunE: a.withToolbox(func(ctx context.Context, box *toolbox.Toolbox, args []string) error {
			if strings.TrimSpace(args[0]) == "" {
				return badUsage("want a QUERY, such as \"open an issue\"")
			}
			inUse, err := toolIDs(box, inUse)
			if err != nil {
				return err
			}
			x, err := a.toolIndex(ctx, box, wait)
			if err != nil {
				return err
			}
			answer, err := x.Search(ctx, toolsearch.Query{Text: args[0], Limit: limit, Explain: explain, ContextTools: inUse})
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
		}),
	}
	cmd.Flags().VarP(&boundedInt{&limit, 1, toolsearch.MaxLimit}, "limit", "n", "most tools to list")
	cmd.Flags().StringSliceVar(&inUse, "context", nil, "tools in use; tools used with them rank higher")
	addWait(cmd, &wait)
	cmd.Flags().BoolVar(&explain, "explain", false, "show the components of each score")
	a.addModel(cmd)
	return cmd
}

// toolIDs returns the IDs of the named tools.
func toolIDs(box *toolbox.Toolbox, names []string) ([]string, error) {
	var ids []string
	for _, name := range names {
		t, err := box.Catalog.Lookup(name)
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

// toolIndex returns the toolbox's index with the vectors that can be made within
// wait. Without a model it searches by keyword.
func (a *app) toolIndex(ctx context.Context, box *toolbox.Toolbox, wait time.Duration) (*toolsearch.Index, error) {
	if err := a.useModel(box); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var indexErr error
	err := a.withProgress(func(bar *term.Progress) error {
		show := func(step job.Progress) {
			if step.Total >= minToolsShown && (step.Phase != "tools keywords" || step.Total >= minWordsShown) {
				bar.Show(step)
			}
		}
		if _, indexErr = box.Index(ctx, show); indexErr != nil {
			return nil
		}
		return box.WaitVectors(limited, show)
	})
	switch {
	case indexErr != nil:
		return nil, indexErr
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		a.stderr.Printf("answering after %s with the vectors made so far; `cairn tools import` or a longer --wait makes the rest\n", wait)
	case err != nil:
		a.stderr.Warn("answering by keyword alone: %s", err)
	}
	return box.Index(ctx, nil)
}

// useModel gives the toolbox the model of the flags.
func (a *app) useModel(box *toolbox.Toolbox) error {
	var o workspace.Options
	if err := a.model.Apply(&o); err != nil {
		return err
	}
	box.UseModel(o.Description, o.Model)
	return nil
}
