package main

import (
	"context"

	"github.com/spf13/cobra"

	"cairn/internal/index"
	"cairn/internal/term"
	"cairn/internal/workspace"
)

func (a *app) indexCommand() *cobra.Command {
	var req index.IndexRequest
	cmd := &cobra.Command{
		Use:   "index",
		Short: "Build or refresh the index; unchanged files cost nothing",
		Args:  cobra.NoArgs,
		RunE:  a.command(func(ctx context.Context, _ []string) error { return a.index(ctx, req) }),
	}
	cmd.Flags().BoolVar(&req.Rebuild, "rebuild", false, "remove the index first; needed after a change of model or format")
	cmd.Flags().BoolVar(&req.NoEmbed, "no-embed", false, "make no vectors; keyword search works without them")
	a.addModel(cmd)
	return cmd
}

func (a *app) index(ctx context.Context, req index.IndexRequest) error {
	w, err := a.open(ctx, "index", workspace.Owning, func(o *workspace.Options) { o.Rebuild = req.Rebuild })
	if err != nil {
		return err
	}
	defer w.Close()
	if found, fix := workspace.Former(w.Place().Root); found != "" {
		a.stderr.Warn("%s: %s", found, fix)
	}
	var report *index.IndexReport
	err = a.withProgress(func(bar *term.Progress) (err error) {
		report, err = w.Index(ctx, req, bar.Show)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return a.print(report, func(*term.Writer) { a.stderr.Printf("%s\n", term.Summary(report)) })
}
