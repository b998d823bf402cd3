package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"cairn/benchmarks"
	"cairn/internal/stage"
)

func (a *app) benchStageCommand() *cobra.Command {
	var o benchmarks.StageOptions
	var f taskServers
	cmd := &cobra.Command{
		Use:   "stage",
		Short: "Measure the machine of question tasks on its stores",
		Long: `Measure the machine of question tasks on its stores: tasks of the standard plan
are created as fast as they are taken in, while workers do their stages. Looking
up and reasoning answer at once with something fixed; everything else is real.

Tasks are kept in a folder for temporary files, or on the servers that are named,
where they stay: give servers that nobody else uses.`,
		RunE: a.command(func(ctx context.Context, _ []string) error {
			if f != (taskServers{}) {
				o.Open = func(ctx context.Context) (stage.Store, stage.Queue, error) {
					return f.open(ctx, a.logger(slog.LevelWarn))
				}
			}
			return a.benchStage(ctx, o)
		}),
	}
	fs := cmd.Flags()
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := cobra.NoArgs(cmd, args); err != nil {
			return err
		}
		return inRange(cmd, bounds{"tasks", 1, 10_000_000}, bounds{"workers", 1, maxWorkers}, bounds{"clients", 1, maxWorkers})
	}
	fs.IntVar(&o.Tasks, "tasks", 10_000, "tasks to create")
	fs.IntVar(&o.Workers, "workers", 4, "workers, each with connections of its own where there is a queue")
	fs.IntVar(&o.Clients, "clients", 1, "clients that create tasks at the same time")
	fs.StringVar(&o.Dir, "dir", "", "folder to keep the tasks in (default: that for temporary files)")
	f.add(fs)
	f.addQueue(fs)
	return cmd
}

func (a *app) benchStage(ctx context.Context, o benchmarks.StageOptions) error {
	show, clear := a.statusLine()
	o.Progress = show
	r, err := benchmarks.Stage(ctx, &o)
	clear()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d tasks of %d stages by %d workers in %.1f s: %.0f tasks, %.0f stages a second\n", r.Tasks, r.Stages/r.Tasks, r.Workers, r.Seconds, r.TasksPerSecond, r.StagesPerSecond)
	fmt.Fprintf(&b, "%-24s %8s %8s %8s\n", "", "p50 ms", "p95 ms", "p99 ms")
	for _, line := range []struct {
		name string
		benchmarks.Latency
	}{{"create, nobody works", r.IdleCreate}, {"status, nobody works", r.IdleStatus}, {"create, under load", r.Create}, {"status, under load", r.Status}} {
		fmt.Fprintf(&b, "%-24s %8.2f %8.2f %8.2f\n", line.name, line.P50, line.P95, line.P99)
	}
	_, err = fmt.Fprint(a.stdout, b.String())
	return err
}
