package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/term"
	"cairn/internal/workspace"
)

func (a *app) watchCommand() *cobra.Command {
	var poll bool
	var t telemetryFlags
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Keep the index up to date with the files, and print changes",
		Long: `Keep the index up to date with the files until interrupted, and print changes.

cairn mcp and cairn serve do the same; this command is for a folder that neither of
them serves, or to see which changes are noticed. Where the system does not report
changes, as on network file systems, the folder is walked at intervals.`,
		Example: `  cairn watch
  cairn watch -C ~/notes --json`,
		Args: cobra.NoArgs,
		RunE: a.command(func(ctx context.Context, _ []string) error { return a.watch(ctx, poll, t) }),
	}
	cmd.Flags().BoolVar(&poll, "poll", false, "look for changes by walking, even if the system reports them")
	t.add(cmd.Flags())
	a.model.add(cmd)
	return cmd
}

func (a *app) watch(ctx context.Context, poll bool, f telemetryFlags) error {
	sel, cfg, err := a.choose()
	if err != nil {
		return err
	}
	tel, err := a.telemetry(ctx, f, cfg.Log, slog.LevelWarn)
	if err != nil {
		return err
	}
	defer tel.Close()
	w, err := a.open(ctx, "watch", workspace.Owning, func(o *workspace.Options) {
		o.Warm, o.Poll, o.Logger = true, poll, tel.Log
	})
	if err != nil {
		return err
	}
	defer w.Close()
	first := true
	err = w.Watch(ctx, func(e workspace.WatchEvent) {
		if a.json {
			_ = a.stdout.JSON(e) // a signal ends the command when its reader leaves
			return
		}
		if first {
			how := ""
			if e.Polling != "" {
				how = " by walking it: " + e.Polling
			}
			a.stderr.Printf("watching %s%s\n", sel.Root, term.Plain(how))
			first = false
		}
		if line := watchLine(e); line != "" {
			a.stdout.Printf("%s\n", line)
		}
	})
	if ctx.Err() != nil {
		return nil // interrupted as intended
	}
	return err
}

// watchLine describes an event in one line, "" if there is nothing to say.
func watchLine(e workspace.WatchEvent) string {
	var what []string
	count := func(n int, word string) {
		if n > 0 {
			what = append(what, fmt.Sprintf("%d %s", n, word))
		}
	}
	count(e.Changed, "new or changed")
	count(e.Removed, "removed")
	count(e.Embedded, "texts embedded")
	if e.Problem != "" {
		what = append(what, "problem: "+term.Plain(e.Problem))
	}
	if len(what) == 0 {
		return ""
	}
	line := e.At.Local().Format("15:04:05") + "  " + strings.Join(what, ", ")
	if !e.First.IsZero() {
		line += fmt.Sprintf(", found by keyword after %.2f s", e.At.Sub(e.First).Seconds())
	}
	if len(e.Paths) > 0 {
		line += "  " + term.Plain(strings.Join(e.Paths, " "))
	}
	return term.Cut(line, 200)
}
