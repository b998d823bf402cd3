package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cairn/internal/config"
	"cairn/internal/host"
	"cairn/internal/stage"
	"cairn/internal/workspace"
)

func (a *app) workerCommand() *cobra.Command {
	var names []string
	var o host.StageOptions
	var servers taskServers
	var t telemetryFlags
	cmd := newCommand("worker [flags]", "Work on the stages of question tasks that cairn serve accepts",
		a.command(func(ctx context.Context, _ []string) (err error) {
			_, cfg, err := a.choose()
			if err != nil {
				return err
			}
			if o.Stages, err = parseStages(names, cfg); err != nil {
				return err
			}
			o.Servers = servers.addresses()
			if err := servers.check(); err != nil {
				return err
			}
			return a.work(ctx, o, cfg.Log, t)
		}))
	fs := cmd.Flags()
	fs.StringSliceVar(&names, "stages", nil, "stages to work on (default: all that are possible here)")
	intVar(fs, &o.Workers, "workers", 2, 1, maxWorkers, "stages worked on at once")
	servers.add(fs)
	servers.addQueue(fs)
	t.add(fs)
	a.addModel(cmd)
	return cmd
}

// maxWorkers bounds the stages that one process works on at once.
const maxWorkers = 256

// parseStages parses the names of stages; no names mean all that are possible here.
func parseStages(names []string, cfg config.Config) ([]stage.Stage, error) {
	model, err := host.Reasoner()
	if err != nil {
		return nil, err
	}
	web, err := host.WebSearch(cfg)
	if err != nil {
		return nil, err
	}
	can := []stage.Stage{stage.IntentAnalysis, stage.EmbeddingLookup, stage.Moderation, stage.ResponsePackaging}
	if model != nil {
		can = append(can, stage.ExecutorReasoning)
	}
	if web != nil {
		can = append(can, stage.WebSearch)
	}
	if len(names) == 0 {
		return can, nil
	}
	var list []stage.Stage
	for _, n := range names {
		s := stage.Stage(strings.TrimSpace(n))
		switch {
		case slices.Contains(can, s):
		case s == stage.ExecutorReasoning:
			return nil, badUsage("%s needs a language model; set CAIRN_LLM_URL and CAIRN_LLM_MODEL", s)
		case s == stage.WebSearch:
			return nil, badUsage("%s needs a search engine; set CAIRN_WEB_SEARCH", s)
		default:
			return nil, badUsage("unknown stage %q, want some of {%s}", n, joinStages(can))
		}
		list = append(list, s)
	}
	return list, nil
}

func joinStages(list []stage.Stage) string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = string(s)
	}
	return strings.Join(names, ",")
}

func (a *app) work(ctx context.Context, o host.StageOptions, log config.Log, f telemetryFlags) (err error) {
	if o.Servers.AMQP == "" {
		return badUsage("a worker gets its stages from RabbitMQ: give --amqp or set CAIRN_AMQP; without it cairn serve works on them itself")
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
	t.Log.Info("working", "stages", joinStages(o.Stages), "at_once", o.Workers)
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

// addresses returns the addresses of the flags, else of the environment.
func (f *taskServers) addresses() host.StageServers {
	return host.StageServers{
		Redis:    cmp.Or(f.Redis, os.Getenv("CAIRN_REDIS")),
		Postgres: cmp.Or(f.Postgres, os.Getenv("CAIRN_POSTGRES")),
		AMQP:     cmp.Or(f.AMQP, os.Getenv("CAIRN_AMQP")),
	}
}

// check returns a usage error for addresses that do not go together.
func (f *taskServers) check() error {
	if at := f.addresses(); at.Redis != "" && at.Postgres == "" {
		return badUsage("--redis needs --postgres, which keeps what Redis may lose")
	}
	return nil
}
