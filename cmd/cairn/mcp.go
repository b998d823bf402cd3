package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
	"cairn/retriever"
	"cairn/tools"
)

type mcpFlags struct {
	noRateLimit, noIndex, noRecord bool
	watch                          bool
	groups, channel                string
	see                            telemetryFlags
}

func (a *app) mcpCommand() *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the tools to an agent over MCP on standard input and output",
		Long: `Serve the tools to an agent over MCP on standard input and output.

The folder is indexed in the background from the start, and again whenever files
change; keyword search answers while vectors are still being made.`,
		Args: cobra.NoArgs,
		RunE: a.command(func(ctx context.Context, _ []string) error { return a.mcp(ctx, f) }),
	}
	cmd.Flags().StringVar(&f.groups, "tools", "", "tools to offer: groups of {core,tasks,dag,docs,tools,stages,all}, or names of tools (default: core, and tools where some have been imported)")
	cmd.Flags().StringVar(&f.channel, "channel", "", "tasks that the dag tools mean when a request names none: cards, or a document such as /plans/a.md (default: dag.channel)")
	cmd.Flags().BoolVar(&f.noRecord, "no-record", false, noRecordText)
	cmd.Flags().BoolVar(&f.noRateLimit, "no-rate-limit", false, "do not limit calls a minute (also CAIRN_RATE_LIMIT=off)")
	cmd.Flags().BoolVar(&f.noIndex, "no-index", false, "do not index at the start, nor watch")
	cmd.Flags().BoolVar(&f.watch, "watch", true, "keep the index up to date with the files (also watcher.enabled)")
	f.see.addCalls(cmd.Flags())
	a.model.add(cmd)
	return cmd
}

const noRecordText = "do not note which documents are read and which tools fetched after which search (also usage.record = false)"

// closeLimit bounds closing the stores after the session: the process has to
// be gone two seconds after its input, and the index survives its end anywhere.
const closeLimit = 500 * time.Millisecond

func (a *app) mcp(ctx context.Context, f mcpFlags) error {
	// A client that closes our output ends the session: its write fails, instead
	// of a signal that ends the process in its midst.
	signal.Ignore(syscall.SIGPIPE)
	if c := f.channel; c != "" && c != taskgraph.CardsChannel && !(strings.HasPrefix(c, "/") && strings.HasSuffix(c, ".md")) {
		return badUsage("--channel is %q, want cards, or a document such as /plans/a.md", c)
	}
	_, set, err := a.choose()
	if err != nil {
		return err
	}
	see, err := a.telemetry(ctx, f.see, set.Log, slog.LevelWarn)
	if err != nil {
		return err
	}
	seen := sync.OnceFunc(see.close)
	defer seen()
	log := see.log
	box, groups, err := a.toolGroups(f.groups)
	if err != nil {
		return err
	}
	w, err := a.open(ctx, "mcp", workspace.Owning, func(o *workspace.Options) {
		o.Background, o.Stateless, o.Warm, o.Logger = !f.noIndex, f.noIndex, true, log
		o.Serves = true
		o.Watch = f.watch && !f.noIndex
		o.Usage = box.Usage
		box.UseModel(o.Description, o.Model)
	})
	if err != nil {
		return errors.Join(err, box.Close())
	}
	if slices.Contains(groups, tools.Catalog) {
		box.Warm(log)
	}
	tasks, err := w.Tasks(&workspace.TaskOptions{Channel: f.channel})
	if err != nil {
		return errors.Join(err, box.Close(), w.Close())
	}
	defer tasks.Close()
	// Other tools start no work of this kind in the background.
	var stages *workspace.Stages
	if tools.Offers(groups, tools.Stages) {
		if stages, err = a.openStages(ctx, w, log, stageFlags{}); err != nil {
			return errors.Join(err, box.Close(), w.Close())
		}
	}
	cfg := w.Config()
	var recorder *tools.Recorder
	if cfg.Usage.Record && !f.noRecord {
		recorder = tools.Record(box.Usage, log)
	}
	var watch func(context.Context, func(workspace.WatchEvent)) error
	if f.watch && !f.noIndex {
		watch = w.Watch
	}
	server := tools.New(w, &tools.Options{
		Version:     versionName(),
		Logger:      log,
		NoRateLimit: f.noRateLimit || os.Getenv("CAIRN_RATE_LIMIT") == "off" || !cfg.MCP.RateLimit,
		DefaultMode: retriever.Mode(cfg.Search.DefaultMode),
		Groups:      groups,
		Watch:       watch,
		Toolbox:     box,
		Tasks:       tasks,
		Stages:      stages,
		Recorder:    recorder,
		Listener:    see.calls(nil),
	})
	err = server.ServeStdio(ctx, a.stdin, a.stdout)
	closed := make(chan error, 1)
	go func() {
		var wg sync.WaitGroup
		wg.Go(seen)
		defer wg.Wait()
		if recorder != nil {
			recorder.Close()
		}
		var err error
		if stages != nil {
			err = stages.Close()
		}
		closed <- errors.Join(err, box.Close(), w.Close())
	}()
	select {
	case closeErr := <-closed:
		if err == nil {
			err = closeErr
		}
	case <-time.After(closeLimit):
	}
	if ctx.Err() != nil || errors.Is(err, syscall.EPIPE) {
		return nil // a server that is told to end has done its work
	}
	return err
}

// toolGroups opens the toolbox and says which groups of tools to offer.
func (a *app) toolGroups(list string) (*workspace.Toolbox, []tools.Group, error) {
	groups := []tools.Group{tools.Core}
	if list != "" {
		var err error
		if groups, err = tools.ParseGroups(list); err != nil {
			return nil, nil, badUsage("--tools: %w", err)
		}
	}
	sel, cfg, err := a.choose()
	if err != nil {
		return nil, nil, err
	}
	box, err := workspace.OpenToolbox(sel, cfg.Usage)
	if err != nil || list != "" {
		return box, groups, err
	}
	known, err := box.Catalog.Tools()
	if len(known) > 0 {
		groups = append(groups, tools.Catalog)
	}
	return box, groups, err
}
