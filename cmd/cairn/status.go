package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"cairn/internal/term"
	"cairn/internal/walk"
	"cairn/internal/workspace"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Print which folder is chosen and the state of its index",
		Args:  cobra.NoArgs,
		RunE: a.command(func(ctx context.Context, _ []string) error {
			w, err := a.open(ctx, "status", workspace.Reading, nil)
			if err != nil {
				return err
			}
			defer w.Close()
			s, err := w.Status(ctx)
			if err != nil {
				return err
			}
			return a.print(s, func(*term.Writer) { a.printStatus(s) })
		}),
	}
}

func (a *app) printStatus(s *workspace.Status) {
	row := func(name, format string, args ...any) {
		a.stdout.Printf("%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("workspace", "%s (%s)", s.Workspace.Root, s.Workspace.Rule)
	if s.Store != "" {
		row("store", "%s", s.Store)
	}
	row("state", "%s", s.State)
	if s.Progress != nil {
		row("progress", "%s", s.Progress)
	}
	row("files", "%d in %s", s.Files, term.Count(s.Sections, "section"))
	row("vectors", "%d made, %d pending", s.Embedded, s.Pending)
	row("model", "%s", s.Model)
	if s.BuiltAt != "" {
		row("built", "%s", s.BuiltAt)
	}
	if s.Owner != nil {
		row("owner", "process %d, %s, since %s", s.Owner.PID, s.Owner.Command, s.Owner.StartedAt.Local().Format("15:04:05"))
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Skipped)) {
		row("skipped", "%s: %s", term.Count(s.Skipped[reason], "file"), walk.Told(reason))
	}
	if s.Problem != "" {
		row("problem", "%s", s.Problem)
	}
	if s.State == "missing" {
		row("next", "cairn index")
	}
}
