package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/stage"
	"cairn/internal/workspace"
)

func (a *app) workerCommand() *cobra.Command {
	var names []string
	var f stageFlags
	var see telemetryFlags
	cmd := &cobra.Command{
		Use:   "worker [flags]",
		Short: "Work on the stages of question tasks that cairn serve takes in",
		Long: `Work on the stages of question tasks that cairn serve takes in, until interrupted.
As many workers as one likes share the stages; what a worker leaves undone when it
dies, another one does, and a stage counts once. Give all of them, and the server,
the same addresses; addresses with passwords are better in the environment, as
everybody on a machine sees the arguments of its processes.

embedding_lookup searches the folder, which must be the server's or a copy of it.
executor_reasoning needs a language model (see cairn ask --help), and a server
started with --remote-reasoning.`,
		Example: `  cairn serve -C ~/notes --workers -1 --postgres postgres://localhost/cairn --redis redis://localhost --amqp amqp://localhost
  cairn worker -C ~/notes --postgres postgres://localhost/cairn --redis redis://localhost --amqp amqp://localhost
  cairn worker --stages intent_analysis,moderation,response_packaging`,
		Args: cobra.NoArgs,
		RunE: a.command(func(ctx context.Context, _ []string) (err error) {
			if f.stages, err = parseStages(names); err != nil {
				return err
			}
			if f.workers < 1 || f.workers > maxWorkers {
				return badUsage("--workers is %d, want 1 to %d", f.workers, maxWorkers)
			}
			f.servers = f.servers.read()
			return a.work(ctx, f, see)
		}),
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&names, "stages", nil, "stages to work on (default: all that can be done here)")
	fs.IntVar(&f.workers, "workers", 2, "stages worked on at once")
	f.servers.add(fs)
	f.servers.addQueue(fs)
	see.add(fs)
	a.model.add(cmd)
	return cmd
}

// maxWorkers bounds what one process works on at once.
const maxWorkers = 256

// parseStages checks the names of stages; none are all that can be done here.
func parseStages(names []string) ([]stage.Stage, error) {
	model, err := reasoner()
	if err != nil {
		return nil, err
	}
	can := []stage.Stage{stage.IntentAnalysis, stage.EmbeddingLookup, stage.Moderation, stage.ResponsePackaging}
	if model != nil {
		can = append(can, stage.ExecutorReasoning)
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
			return nil, badUsage("%s is done by the calling agent, with task_dag_advance", s)
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

func (a *app) work(ctx context.Context, f stageFlags, seen telemetryFlags) (err error) {
	if f.servers.amqp == "" {
		return badUsage("a worker gets its stages by RabbitMQ: give --amqp or set CAIRN_AMQP; without it cairn serve works on them itself")
	}
	_, cfg, err := a.choose()
	if err != nil {
		return err
	}
	see, err := a.telemetry(ctx, seen, cfg.Log, slog.LevelInfo)
	if err != nil {
		return err
	}
	defer see.close()
	log := see.log
	w, err := a.open(ctx, "worker", workspace.Owning, func(o *workspace.Options) { o.Warm, o.Logger = true, log })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	st, err := a.openStages(ctx, w, log, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	log.Info("working", "stages", joinStages(f.stages), "at_once", f.workers)
	<-ctx.Done()
	return nil // a worker that is told to end has done its work
}
