package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"cairn/internal/face/term"
	"cairn/internal/face/view"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
	"cairn/internal/text/walk"
)

func (a *app) indexCommand() *cobra.Command {
	var req index.IndexRequest
	var try bool
	cmd := &cobra.Command{
		Use:   "index",
		Short: "Build or refresh the index; unchanged files cost nothing",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if try {
			return a.withTasks(a.indexable)(cmd, args)
		}
		return a.command(func(ctx context.Context, _ []string) error { return a.index(ctx, req) })(cmd, args)
	}
	cmd.Flags().BoolVar(&req.Rebuild, "rebuild", false, "remove the index first; needed after a change of model or format")
	cmd.Flags().BoolVar(&req.NoEmbed, "no-embed", false, "make no vectors; keyword search works without them")
	cmd.Flags().BoolVarP(&try, "dry-run", "d", false, "only print the files that would be indexed and left out")
	a.addModel(cmd)
	return cmd
}

// indexable prints what an index would hold.
func (a *app) indexable(ctx context.Context, t *workspace.Tasks, _ []string) error {
	var v struct {
		Files   []string            `json:"files"`
		Skipped []index.SkippedFile `json:"skipped"`
	}
	var err error
	v.Files, err = t.Paths(ctx, func(e walk.Entry) {
		v.Skipped = append(v.Skipped, index.SkippedFile{Path: e.Path, Reason: e.Reason.String()})
	})
	if err != nil {
		return err
	}
	return a.out.Print(v, func() {
		for _, p := range v.Files {
			a.out.Printf("%s\n", term.Plain(p))
		}
		for _, s := range v.Skipped {
			a.out.Notes.Dim(fmt.Sprintf("left out: %s (%s)", term.Plain(s.Path), walk.WithAdvice(s.Reason)))
		}
		a.out.Notes.Printf("%s to index, %d left out\n", view.Count(len(v.Files), "file"), len(v.Skipped))
	})
}

func (a *app) index(ctx context.Context, req index.IndexRequest) error {
	w, err := a.open(ctx, "index", workspace.Owning, func(o *workspace.Options) { o.Rebuild = req.Rebuild })
	if err != nil {
		return err
	}
	defer w.Close()
	report, err := withProgress(a, func(bar *term.Progress) (*index.IndexReport, error) {
		return index.IndexOp.Call(ctx, w.Folder, req, bar.Show)
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return a.out.Print(report, func() { a.out.Notes.Printf("%s\n", term.Summary(report)) })
}
