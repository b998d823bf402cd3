package tasks

import (
	"context"
	"errors"
	"log/slog"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/host"
	"cairn/internal/folder/workspace"
)

func (a *app) workerCommand() *cli.Command {
	var names []string
	var o host.StageOptions
	var servers cli.Servers
	var f cli.TelemetryFlags
	cmd := cli.NewCommand("worker [flags]", "Work on the stages of question tasks that cairn serve accepts",
		a.Command(func(ctx context.Context, _ []string) (err error) {
			_, cfg, err := a.Choose()
			if err != nil {
				return err
			}
			if o.Stages, err = host.ParseStages(names, cfg); err != nil {
				return &cli.UsageError{Err: err}
			}
			if o.Servers, err = servers.Addresses(); err != nil {
				return err
			}
			if o.Servers.AMQP == "" {
				return cli.BadUsage("a worker receives its stages from RabbitMQ: set --amqp or CAIRN_AMQP; without RabbitMQ cairn serve works on the stages itself")
			}
			t, err := a.Telemetry(ctx, f, slog.LevelInfo)
			if err != nil {
				return err
			}
			defer t.Close()
			w, err := a.Open(ctx, "worker", workspace.Owning, func(wo *workspace.Options) { wo.Warm, wo.Logger = true, t.Log })
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, w.Close()) }()
			st, err := host.OpenStages(ctx, w, t.Log, &o)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, st.Close()) }()
			t.Log.Info("working", "stages", o.Stages, "at_once", o.Workers)
			<-ctx.Done()
			return nil // a signal is the intended end of a worker
		}))
	fs := cmd.Flags()
	fs.StringSliceVar(&names, "stages", nil, "stages to work on (default: all that are possible here)")
	cli.IntVar(fs, &o.Workers, "workers", 2, 1, cli.MaxWorkers, "stages to work on at the same time")
	servers.Add(fs)
	servers.AddQueue(fs)
	f.Add(fs)
	a.AddModel(cmd)
	return cmd
}
