package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cairn/internal/face/host"
	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
)

func (a *app) workerCommand() *cobra.Command {
	var names []string
	var o host.StageOptions
	var servers taskServers
	var t telemetryFlags
	cmd := newCommand("worker [flags]", "Work on the stages of question tasks that cairn serve accepts",
		a.command(func(ctx context.Context, _ []string) error {
			_, cfg, err := a.choose()
			if err != nil {
				return err
			}
			if o.Stages, err = host.ParseStages(names, cfg); err != nil {
				return &usageError{err}
			}
			if o.Servers, err = servers.addresses(); err != nil {
				return err
			}
			return a.work(ctx, o, cfg.Log, t)
		}))
	fs := cmd.Flags()
	fs.StringSliceVar(&names, "stages", nil, "stages to work on (default: all that are possible here)")
	intVar(fs, &o.Workers, "workers", 2, 1, maxWorkers, "stages to work on at the same time")
	servers.add(fs)
	servers.addQueue(fs)
	t.add(fs)
	a.addModel(cmd)
	return cmd
}

// maxWorkers bounds the stages that one process works on at the same time.
const maxWorkers = 256

func (a *app) work(ctx context.Context, o host.StageOptions, log config.Log, f telemetryFlags) (err error) {
	if o.Servers.AMQP == "" {
		return badUsage("a worker receives its stages from RabbitMQ: set --amqp or CAIRN_AMQP; without RabbitMQ cairn serve works on the stages itself")
	}
	t, err := a.telemetry(ctx, f, log, slog.LevelInfo)
	if err != nil {
		return err
	}
	defer t.Close()
	w, err := a.open(ctx, "worker", workspace.Owning, func(wo *workspace.Options) { wo.Warm, wo.Logger = true, t.Log })
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
}

// taskServers are the flags for the servers of question tasks.
type taskServers host.StageServers

func (f *taskServers) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.Redis, "redis", "", "keep active question tasks in redis://HOST:6379/0 (also CAIRN_REDIS); needs --postgres")
	fs.StringVar(&f.Postgres, "postgres", "", "keep question tasks and their history in postgres://USER@HOST:5432/DATABASE (also CAIRN_POSTGRES)")
}

func (f *taskServers) addQueue(fs *pflag.FlagSet) {
	fs.StringVar(&f.AMQP, "amqp", "", "send the stages of question tasks to workers through RabbitMQ at amqp://USER@HOST:5672/ (also CAIRN_AMQP)")
}

// addresses returns the addresses from the flags, or else from the environment. It returns a
// usage error for Redis without Postgres.
func (f *taskServers) addresses() (host.StageServers, error) {
	at := host.StageServers{
		Redis:    cmp.Or(f.Redis, os.Getenv("CAIRN_REDIS")),
		Postgres: cmp.Or(f.Postgres, os.Getenv("CAIRN_POSTGRES")),
		AMQP:     cmp.Or(f.AMQP, os.Getenv("CAIRN_AMQP")),
	}
	if at.Redis != "" && at.Postgres == "" {
		return at, badUsage("--redis needs --postgres, which keeps what Redis may lose")
	}
	return at, nil
}
