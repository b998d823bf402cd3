package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"cairn/internal/index"
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
	a.addModel(cmd)
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
	err = w.Watch(ctx, func(e index.WatchEvent) {
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
		if line := term.EventLine(e); line != "" {
			a.stdout.Printf("%s\n", line)
		}
	})
	if ctx.Err() != nil {
		return nil // interrupted as intended
	}
	return err
}
