package main

import (
	"context"
	"errors"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cairn/internal/host"
	"cairn/internal/task/taskgraph"
	"cairn/internal/workspace"
	"cairn/tools"
)

// hostFlags are the flags of commands that serve a folder.
type hostFlags struct {
	noRateLimit, noIndex, noRecord, watch bool
	groups                                string
	telemetry                             telemetryFlags
}

func (f *hostFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.groups, "tools", "", "tools to offer: groups of {auto,core,tasks,dag,docs,tools,stages,all}, or names of tools (default: mcp.tools, which is auto: what the folder has use for)")
	fs.BoolVar(&f.noRecord, "no-record", false, "do not observe which documents are read and which tools are fetched after a search (also usage.record = false)")
	fs.BoolVar(&f.noIndex, "no-index", false, "do not index at the start, and do not watch")
	fs.BoolVar(&f.watch, "watch", true, "keep the index up to date with the files (also watcher.enabled)")
	f.telemetry.addCalls(fs)
}

// host opens a folder for the named command. name is the name of its workspace.
func (a *app) host(ctx context.Context, command, name string, f *hostFlags, change func(*host.Options)) (*host.Folder, error) {
	sel, cfg, err := a.choose()
	if err != nil {
		return nil, err
	}
	o := host.Options{
		Name: name, Version: versionName(), Workspace: workspace.Options{Command: command},
		NoIndex: f.noIndex, NoWatch: !f.watch, NoRecord: f.noRecord, NoRateLimit: f.noRateLimit,
	}
	if f.groups != "" {
		if o.Groups, err = tools.ParseGroups(f.groups); err != nil {
			return nil, badUsage("--tools: %w", err)
		}
	}
	if err := a.model.Apply(&o.Workspace); err != nil {
		return nil, err
	}
	if o.Workspace.Store, err = a.chooseStore(cfg); err != nil {
		return nil, err
	}
	if o.Toolbox, err = a.toolboxOptions(command, sel, cfg); err != nil {
		return nil, err
	}
	change(&o)
	return host.Open(ctx, sel, cfg, o)
}

func (a *app) mcpCommand() *cobra.Command {
	var f hostFlags
	var channel string
	var rateLimit, noRateLimit bool
	cmd := newCommand("mcp", "Serve the tools to an agent over MCP on standard input and output",
		a.command(func(ctx context.Context, _ []string) error {
			f.noRateLimit = !rateLimit
			if noRateLimit { // cobra would print a deprecation on standard output, which is the protocol's
				a.stderr.Printf("cairn: --no-rate-limit is deprecated: calls are limited only with --rate-limit\n")
			}
			return a.mcp(ctx, f, channel)
		}))
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&rateLimit, "rate-limit", false, "limit the calls per minute, as cairn serve does")
	cmd.Flags().BoolVar(&noRateLimit, "no-rate-limit", false, "")
	cmd.Flags().Lookup("no-rate-limit").Hidden = true
	cmd.Flags().StringVar(&channel, "channel", "", "tasks for dag tools without a channel: cards, or a document such as /plans/a.md (default: dag.channel)")
	a.addModel(cmd)
	a.addRerank(cmd)
	return cmd
}

func (a *app) mcp(ctx context.Context, f hostFlags, channel string) error {
	// When the client closes our output, the write fails and ends the session; the
	// signal would end the process in the middle of its work.
	signal.Ignore(syscall.SIGPIPE)
	if channel != "" && channel != taskgraph.CardsChannel && !(strings.HasPrefix(channel, "/") && strings.HasSuffix(channel, ".md")) {
		return badUsage("--channel is %q, want cards, or a document such as /plans/a.md", channel)
	}
	_, cfg, err := a.choose()
	if err != nil {
		return err
	}
	t, err := a.telemetry(ctx, f.telemetry, cfg.Log, slog.LevelWarn)
	if err != nil {
		return err
	}
	defer t.Close()
	folder, err := a.host(ctx, "cairn mcp", "", &f, func(o *host.Options) { o.Telemetry, o.Channel = t, channel })
	if err != nil {
		return err
	}
	err = folder.Tools.ServeStdio(ctx, a.stdin, a.stdout)
	closeErr := folder.Close()
	if ctx.Err() != nil || errors.Is(err, syscall.EPIPE) {
		return nil // the end of the session is no failure
	}
	if err == nil {
		err = closeErr
	}
	return err
}
