package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"cairn/internal/workspace"
)

func (a *app) indexCommand() *cobra.Command {
	var req workspace.IndexRequest
	cmd := &cobra.Command{
		Use:   "index",
		Short: "Build or refresh the index; unchanged files cost nothing",
		Args:  cobra.NoArgs,
		RunE:  a.command(func(ctx context.Context, _ []string) error { return a.index(ctx, req) }),
	}
	cmd.Flags().BoolVar(&req.Rebuild, "rebuild", false, "throw the index away first; needed after a change of model or format")
	cmd.Flags().BoolVar(&req.NoEmbed, "no-embed", false, "leave the vectors for later; keyword search works without")
	a.model.add(cmd)
	return cmd
}

func (a *app) index(ctx context.Context, req workspace.IndexRequest) error {
	w, err := a.open(ctx, "index", workspace.Owning, func(o *workspace.Options) { o.Rebuild = req.Rebuild })
	if err != nil {
		return err
	}
	defer w.Close()
	bar := a.newProgress()
	report, err := w.Index(ctx, req, bar.show)
	bar.end()
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(report)
	}
	fmt.Fprintln(a.stderr, summary(report))
	return nil
}

// summary says in one line what a run did.
func summary(r *workspace.IndexReport) string {
	s := fmt.Sprintf("indexed %s in %s: %d new or changed, %d removed, %d skipped; %s embedded", many(r.Files, "file"), many(r.Sections, "section"), r.Added, r.Removed, r.Skipped, many(r.Embedded, "text"))
	if r.Pending > 0 {
		s += fmt.Sprintf(", %s still without a vector", many(r.Pending, "piece"))
	}
	return s + fmt.Sprintf("; %.1f s", r.Seconds)
}
