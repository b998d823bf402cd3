package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/workspace"
)

func (a *app) watchCommand() *cobra.Command {
	var poll bool
	var see seeFlags
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Keep the index up to date with the files, and tell what changes",
		Long: `Keep the index up to date with the files until interrupted, and tell what changes.

cairn mcp and cairn serve do so by themselves; this is for a folder that nobody
serves, or to see what is noticed. Where the system does not tell of changes, as
on network file systems, the folder is walked again and again.`,
		Example: `  cairn watch
  cairn watch -C ~/notes --json`,
		Args: cobra.NoArgs,
		RunE: a.command(func(ctx context.Context, _ []string) error { return a.watch(ctx, poll, see) }),
	}
	cmd.Flags().BoolVar(&poll, "poll", false, "look for changes by walking, also where the system tells of them")
	see.add(cmd.Flags())
	a.model.add(cmd)
	return cmd
}

func (a *app) watch(ctx context.Context, poll bool, f seeFlags) error {
	_, cfg, err := a.choose()
	if err != nil {
		return err
	}
	see, err := a.see(ctx, f, cfg.Log, slog.LevelWarn)
	if err != nil {
		return err
	}
	defer see.close()
	w, err := a.open(ctx, "watch", workspace.Owning, func(o *workspace.Options) {
		o.Warm, o.Poll, o.Logger = true, poll, see.log
	})
	if err != nil {
		return err
	}
	defer w.Close()
	sel, err := workspace.Select(workspace.SelectOptions{Flag: a.dir})
	if err != nil {
		return err
	}
	first := true
	err = w.Watch(ctx, func(e workspace.WatchEvent) {
		if a.json {
			// A reader that has left ends the command by a signal.
			_ = a.printJSON(e)
			return
		}
		if first {
			how := ""
			if e.Polling != "" {
				how = " by walking it: " + e.Polling
			}
			fmt.Fprintf(a.stderr, "watching %s%s\n", sel.Root, plain(how))
			first = false
		}
		if line := watchLine(e); line != "" {
			fmt.Fprintln(a.stdout, line)
		}
	})
	if ctx.Err() != nil {
		return nil // told to end, it has done its work
	}
	return err
}

// watchLine says in one line what happened; "" for nothing of note.
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
		what = append(what, "problem: "+plain(oneLine(e.Problem)))
	}
	if len(what) == 0 {
		return ""
	}
	line := e.At.Local().Format("15:04:05") + "  " + strings.Join(what, ", ")
	if !e.First.IsZero() {
		line += fmt.Sprintf(", found by words after %.2f s", e.At.Sub(e.First).Seconds())
	}
	if len(e.Paths) > 0 {
		line += "  " + plain(strings.Join(e.Paths, " "))
	}
	return cut(line, 200)
}
