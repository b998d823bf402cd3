package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cairn/internal/face/host"
	"cairn/internal/folder/config"
	"cairn/internal/task/taskgraph"
	"cairn/tools"
)

// hostFlags are the flags of commands that serve a folder.
type hostFlags struct {
	noRateLimit, noIndex, noRecord, watch bool
	groups                                string
	telemetry                             telemetryFlags
}

func (f *hostFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.groups, "tools", "", "tools to offer: groups of {auto,core,tasks,dag,docs,tools,stages,all}, or names of tools (default: mcp.tools, auto: those that the folder can use)")
	fs.BoolVar(&f.noRecord, "no-record", false, "do not record which documents are read and which tools are fetched after a search (also usage.record = false)")
	fs.BoolVar(&f.noIndex, "no-index", false, "neither index at the start nor watch")
	fs.BoolVar(&f.watch, "watch", true, "keep the index up to date with the files (also watcher.enabled)")
	f.telemetry.addCalls(fs)
}

// host opens a folder for the named command. name is the name of its workspace.
func (a *app) host(ctx context.Context, command, name string, f *hostFlags, change func(*host.Options)) (*host.Folder, error) {
	sel, cfg, w, err := a.options(command)
	if err != nil {
		return nil, err
	}
	o := host.Options{
		Name: name, Version: versionName(), Workspace: w, Toolbox: a.toolboxOptions(sel, cfg, w),
		NoIndex: f.noIndex, NoWatch: !f.watch, NoRecord: f.noRecord, NoRateLimit: f.noRateLimit,
	}
	if f.groups != "" {
		if o.Groups, err = tools.ParseGroups(f.groups); err != nil {
			return nil, badUsage("--tools: %w", err)
		}
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
			if noRateLimit { // cobra prints deprecations on standard output, which belongs to the protocol
				a.out.Notes.Printf("cairn: --no-rate-limit is deprecated: calls are limited only with --rate-limit\n")
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
	// A write fails when the client has closed the output, and ends the session. The signal
	// would end the process in the middle of its work.
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
	folder, err := a.host(ctx, "mcp", "", &f, func(o *host.Options) { o.Telemetry, o.Channel = t, channel })
	if err != nil {
		return err
	}
	err = folder.Tools.ServeStdio(ctx, a.stdin, a.out)
	closeErr := folder.Close()
	if ctx.Err() != nil || errors.Is(err, syscall.EPIPE) {
		return nil // this is how a session ends
	}
	if err == nil {
		err = closeErr
	}
	return err
}

// telemetryFlags are the flags for the log, profiles and traces of a long-running command.
type telemetryFlags struct {
	format, level string
	queries       bool
	pprof, otlp   string
}

// add adds the flags of every long-running command.
func (f *telemetryFlags) add(fs *pflag.FlagSet) {
	choiceVar(fs, &f.format, "log-format", "format of the log on standard error: text or json (default: log.format, text)", "text", "json")
	choiceVar(fs, &f.level, "log-level", "lowest level of the log: debug, info, warn or error (default: log.level)", "debug", "info", "warn", "error")
	fs.StringVar(&f.pprof, "pprof", "", "serve Go's profiles on this loopback address, such as 127.0.0.1:6060")
}

// addCalls adds these flags and those of commands that answer calls.
func (f *telemetryFlags) addCalls(fs *pflag.FlagSet) {
	f.add(fs)
	fs.BoolVar(&f.queries, "log-queries", false, "also log queries (also CAIRN_LOG_QUERIES=1)")
	fs.StringVar(&f.otlp, "otlp", "", "send traces to this OTLP receiver over HTTP, such as http://127.0.0.1:4318 (also OTEL_EXPORTER_OTLP_ENDPOINT)")
}

// telemetry opens the log, profiles and traces. level is the command's default.
func (a *app) telemetry(ctx context.Context, f telemetryFlags, cfg config.Log, level slog.Level) (*host.Telemetry, error) {
	o := host.TelemetryOptions{Log: a.out.Notes, Level: level, Queries: f.queries || os.Getenv("CAIRN_LOG_QUERIES") == "1", Pprof: f.pprof, OTLP: f.otlp, Version: versionName(),
		JSON: cmp.Or(f.format, cfg.Format) == "json"}
	if name := cmp.Or(f.level, cfg.Level); name != "auto" {
		if err := o.Level.UnmarshalText([]byte(name)); err != nil {
			return nil, err // unreachable: both are checked
		}
	}
	t, err := host.OpenTelemetry(ctx, o)
	if err != nil {
		return nil, &usageError{err}
	}
	return t, nil
}
