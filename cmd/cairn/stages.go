package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"

	"cairn/internal/stage"
	"cairn/internal/stage/openai"
	"cairn/internal/stage/postgres"
	"cairn/internal/stage/rabbitmq"
	"cairn/internal/stage/redis"
	"cairn/internal/workspace"
)

// taskServers are the addresses of where question tasks are kept and of what
// brings their stages to workers. Without any it is the folder and this process.
type taskServers struct{ redis, postgres, amqp string }

func (f *taskServers) add(fs stringFlags) {
	fs.StringVar(&f.redis, "redis", "", "keep active question tasks in redis://HOST:6379/0 (also CAIRN_REDIS); needs --postgres")
	fs.StringVar(&f.postgres, "postgres", "", "keep question tasks and their history in postgres://USER@HOST:5432/DATABASE (also CAIRN_POSTGRES)")
}

func (f *taskServers) addQueue(fs stringFlags) {
	fs.StringVar(&f.amqp, "amqp", "", "bring their stages to workers by RabbitMQ at amqp://USER@HOST:5672/ (also CAIRN_AMQP)")
}

// read fills in what no flag has given.
func (f taskServers) read() taskServers {
	return taskServers{
		redis:    cmp.Or(f.redis, os.Getenv("CAIRN_REDIS")),
		postgres: cmp.Or(f.postgres, os.Getenv("CAIRN_POSTGRES")),
		amqp:     cmp.Or(f.amqp, os.Getenv("CAIRN_AMQP")),
	}
}

// open connects to the servers that are named. What it returns is nil without one.
func (f taskServers) open(ctx context.Context, log *slog.Logger) (store stage.Store, queue stage.Queue, err error) {
	if f.redis != "" && f.postgres == "" {
		return nil, nil, badUsage("--redis needs --postgres, which keeps what Redis may lose")
	}
	if f.postgres != "" {
		archive, err := postgres.Open(ctx, f.postgres)
		if err != nil {
			return nil, nil, err
		}
		store = archive
		if f.redis != "" {
			active, err := redis.Open(ctx, f.redis, archive, &redis.Options{Logger: log})
			if err != nil {
				return nil, nil, errors.Join(err, archive.Close())
			}
			store = active
		}
	}
	if f.amqp != "" {
		jobs, err := rabbitmq.Open(ctx, f.amqp, &rabbitmq.Options{Logger: log})
		if err != nil {
			if store != nil {
				err = errors.Join(err, store.Close())
			}
			return nil, nil, err
		}
		queue = jobs
	}
	return store, queue, nil
}

// stageFlags say where question tasks are done. Zero means here, all that can be.
type stageFlags struct {
	stages  []stage.Stage
	workers int
	remote  bool // workers elsewhere reason
	servers taskServers
}

// reasoner is the language model of the environment, nil without one. A folder's
// configuration cannot name one: it must not send the folder's text anywhere.
func reasoner() (*openai.Client, error) { return openai.FromEnv(os.Getenv) }

// openStages opens the question tasks of a workspace.
func (a *app) openStages(ctx context.Context, w *workspace.Workspace, log *slog.Logger, f stageFlags) (*workspace.Stages, error) {
	o := &workspace.StageOptions{Stages: f.stages, Workers: f.workers, Remote: f.remote, Tend: f.workers < 0, Logger: log}
	model, err := reasoner()
	if err != nil {
		return nil, err
	}
	if model != nil { // a nil *Client in an interface would not be nil
		o.Reasoner = model
		if os.Getenv("CAIRN_LLM_JUDGE") == "1" {
			o.Judge = model
		}
	}
	if o.Store, o.Queue, err = f.servers.open(ctx, log); err != nil {
		return nil, err
	}
	return w.Stages(o)
}
