package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"cairn/internal/folder/config"
	"cairn/internal/folder/workspace"
	"cairn/internal/stage"
	"cairn/internal/stage/openai"
	"cairn/internal/stage/postgres"
	"cairn/internal/stage/rabbitmq"
	"cairn/internal/stage/redis"
	"cairn/internal/stage/websearch"
)

// StageServers holds the addresses of the servers that store question tasks and queue their
// stages. With the zero value, the tasks are in the folder and the queue in this process.
type StageServers struct{ Redis, Postgres, AMQP string }

// Open connects to the servers. The store or the queue is nil if it has no server.
func (s StageServers) Open(ctx context.Context, log *slog.Logger) (store stage.Store, queue stage.Queue, err error) {
	if s.Postgres != "" {
		tasks, err := postgres.Open(ctx, s.Postgres)
		if err != nil {
			return nil, nil, err
		}
		store = tasks
		if s.Redis != "" {
			copied, err := redis.Open(ctx, s.Redis, store, log)
			if err != nil {
				return nil, nil, errors.Join(err, store.Close())
			}
			store = copied
		}
	}
	if s.AMQP != "" {
		jobs, err := rabbitmq.Open(ctx, s.AMQP, log)
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

// StageOptions configures OpenStages, which sets Store, Queue, Keep and what calls a model.
type StageOptions struct {
	workspace.StageOptions
	Servers StageServers
}

// helpers returns the language model in the environment, and the search engine of
// CAIRN_WEB_SEARCH or else of the configuration. Each is nil if there is none. The configuration
// of a folder cannot set a model, because it must not send the text of the folder to a server,
// and only CAIRN_WEB_SEARCH may be a command.
func helpers(cfg config.Config) (model *openai.Client, web *websearch.Client, err error) {
	if model, err = openai.FromEnv(os.Getenv); err != nil {
		return nil, nil, err
	}
	spec := os.Getenv("CAIRN_WEB_SEARCH")
	if web, err = websearch.New(cmp.Or(spec, cfg.Questions.WebSearch)); err != nil && spec != "" {
		err = fmt.Errorf("CAIRN_WEB_SEARCH: %w", err)
	}
	return model, web, err
}

// ParseStages parses the names of stages. Without names it returns all that are possible with
// the language model and the search engine of this process.
func ParseStages(names []string, cfg config.Config) ([]stage.Stage, error) {
	model, web, err := helpers(cfg)
	if err != nil {
		return nil, err
	}
	possible := []stage.Stage{stage.IntentAnalysis, stage.EmbeddingLookup, stage.Moderation, stage.ResponsePackaging}
	if model != nil {
		possible = append(possible, stage.ExecutorReasoning)
	}
	if web != nil {
		possible = append(possible, stage.WebSearch)
	}
	if len(names) == 0 {
		return possible, nil
	}
	var list []stage.Stage
	for _, n := range names {
		s := stage.Stage(strings.TrimSpace(n))
		switch {
		case slices.Contains(possible, s):
		case s == stage.ExecutorReasoning:
			return nil, fmt.Errorf("%s needs a language model; set CAIRN_LLM_URL and CAIRN_LLM_MODEL", s)
		case s == stage.WebSearch:
			return nil, fmt.Errorf("%s needs a search engine; set CAIRN_WEB_SEARCH", s)
		default:
			return nil, fmt.Errorf("unknown stage %q, want some of {%s}", n, strings.ReplaceAll(strings.Trim(fmt.Sprint(possible), "[]"), " ", ","))
		}
		list = append(list, s)
	}
	return list, nil
}

// OpenStages opens the question tasks of a workspace. Nil options mean the defaults.
func OpenStages(ctx context.Context, w *workspace.Workspace, log *slog.Logger, o *StageOptions) (*workspace.Stages, error) {
	o = cmp.Or(o, &StageOptions{})
	so := o.StageOptions
	so.Maintain, so.Logger = so.Workers < 0, log
	model, web, err := helpers(w.Config())
	if err != nil {
		return nil, err
	}
	if model != nil { // a nil *Client in an interface would not be nil
		so.Reasoner, so.Judge = model, model
		if w.Config().Questions.Intent == "model" {
			so.Analyst = model
		}
	}
	so.Keep = w.Config().Questions.Keep()
	if web != nil {
		so.Web = web
	}
	if so.Store, so.Queue, err = o.Servers.Open(ctx, log); err != nil {
		return nil, err
	}
	return w.Stages(&so)
}
