package search

import (
	"context"
	"log/slog"

	"cairn/cmd/cairn/internal/cli"
	"cairn/cmd/cairn/internal/tasks"
	"cairn/internal/face/term"
	"cairn/internal/folder/index"
	"cairn/internal/folder/workspace"
)

func (a *app) watchCommand() *cli.Command {
	var poll, scene bool
	var f cli.TelemetryFlags
	cmd := cli.NewCommand("watch", "Keep the index up to date with the files, and print changes",
		a.Command(func(ctx context.Context, _ []string) error {
			sel, cfg, err := a.Choose()
			if err != nil {
				return err
			}
			tel, err := a.Telemetry(ctx, f, slog.LevelWarn)
			if err != nil {
				return err
			}
			defer tel.Close()
			w, err := a.Open(ctx, "watch", workspace.Owning, func(o *workspace.Options) {
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
				refresh = func() { tasks.RefreshScene(ctx, a.App, sel.Root, t, cfg) }
			}
			err = w.Watch(ctx, func(e index.WatchEvent) {
				if first || e.Changed+e.Removed > 0 {
					refresh()
				}
				begins := first
				first = false
				if a.Out.JSON {
					_ = a.Out.Encode(e) // SIGPIPE ends the command when the reader closes the output
					return
				}
				if begins {
					how := ""
					if e.Polling != "" {
						how = " by walking it: " + e.Polling
					}
					a.Out.Notes.Printf("watching %s%s\n", sel.Root, term.Plain(how))
				}
				if line := term.EventLine(e); line != "" {
					a.Out.Printf("%s\n", line)
				}
			})
			if ctx.Err() != nil {
				return nil // a signal is the intended end of the command
			}
			return err
		}))
	cmd.Flags().BoolVar(&poll, "poll", false, "look for changes by walking the folder, even if the system reports changes")
	cmd.Flags().BoolVar(&scene, "scene", false, "after each change, copy the scene to the clipboard and SCENE.md")
	f.Add(cmd.Flags())
	a.AddModel(cmd)
	return cmd
}
