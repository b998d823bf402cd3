package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"cairn/internal/face/term"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
)

func (a *app) watchCommand() *cobra.Command {
	var poll, scene bool
	var t telemetryFlags
	cmd := newCommand("watch", "Keep the index up to date with the files, and print changes",
		a.command(func(ctx context.Context, _ []string) error { return a.watch(ctx, poll, scene, t) }))
	cmd.Flags().BoolVar(&poll, "poll", false, "look for changes by walking the folder, even if the system reports changes")
	cmd.Flags().BoolVar(&scene, "scene", false, "after each change, copy the scene to the clipboard and SCENE.md")
	t.add(cmd.Flags())
	a.addModel(cmd)
	return cmd
}

func (a *app) watch(ctx context.Context, poll, scene bool, f telemetryFlags) error {
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
	first, refresh := true, func() {}
	if scene {
		t, err := w.Tasks(nil)
		if err != nil {
			return err
		}
		defer t.Close()
		refresh = func() { a.refreshScene(ctx, sel.Root, t, cfg) }
	}
	err = w.Watch(ctx, func(e index.WatchEvent) {
		if first || e.Changed+e.Removed > 0 {
			refresh()
		}
		begins := first
		first = false
		if a.out.JSON {
			_ = a.out.Encode(e) // SIGPIPE ends the command when the reader closes the output
			return
		}
		if begins {
			how := ""
			if e.Polling != "" {
				how = " by walking it: " + e.Polling
			}
			a.out.Notes.Printf("watching %s%s\n", sel.Root, term.Plain(how))
		}
		if line := term.EventLine(e); line != "" {
			a.out.Printf("%s\n", line)
		}
	})
	if ctx.Err() != nil {
		return nil // a signal is the intended end of the command
	}
	return err
}
