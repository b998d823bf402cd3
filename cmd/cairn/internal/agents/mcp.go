package agents

import (
	"context"
	"errors"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"

	"cairn/cmd/cairn/internal/cli"
	"cairn/internal/face/host"
	"cairn/internal/task/taskgraph"
	"cairn/tools"
)

// hostFlags are the flags of commands that serve a folder.
type hostFlags struct {
	noRateLimit, noIndex, noRecord, watch bool
	groups                                string
	telemetry                             cli.TelemetryFlags
}

func (f *hostFlags) add(fs *cli.FlagSet) {
	fs.StringVar(&f.groups, "tools", "", "tools to offer: groups of {auto,core,tasks,dag,docs,tools,stages,all}, or names of tools (default: mcp.tools, auto: those that the folder can use)")
	fs.BoolVar(&f.noRecord, "no-record", false, "do not record which documents are read and which tools are fetched after a search (also usage.record = false)")
	fs.BoolVar(&f.noIndex, "no-index", false, "neither index at the start nor watch")
	fs.BoolVar(&f.watch, "watch", true, "keep the index up to date with the files (also watcher.enabled)")
	f.telemetry.AddCalls(fs)
}

// host opens a folder for the named command. name is the name of its workspace.
func (a *app) host(ctx context.Context, command, name string, f *hostFlags, change func(*host.Options)) (*host.Folder, error) {
	sel, cfg, w, err := a.Options(command)
	if err != nil {
		return nil, err
	}
	o := host.Options{
		Name: name, Version: a.Version, Workspace: w,
		NoIndex: f.noIndex, NoWatch: !f.watch, NoRecord: f.noRecord, NoRateLimit: f.noRateLimit,
	}
	if f.groups != "" {
		if o.Groups, err = tools.ParseGroups(f.groups); err != nil {
			return nil, cli.BadUsage("--tools: %w", err)
		}
	}
	change(&o)
	return host.Open(ctx, sel, cfg, o)
}

func (a *app) mcpCommand() *cli.Command {
	var f hostFlags
	var channel string
	var rateLimit, noRateLimit bool
	cmd := cli.NewCommand("mcp", "Serve the tools to an agent over MCP on standard input and output",
		a.Command(func(ctx context.Context, _ []string) error {
			f.noRateLimit = !rateLimit
			if noRateLimit { // cobra prints deprecations on standard output, which belongs to the protocol
				a.Out.Notes.Printf("cairn: --no-rate-limit is deprecated: calls are limited only with --rate-limit\n")
			}
			// A write fails when the client has closed the output, and ends the session. The signal
			// would end the process in the middle of its work.
			signal.Ignore(syscall.SIGPIPE)
			if channel != "" && channel != taskgraph.CardsChannel && !(strings.HasPrefix(channel, "/") && strings.HasSuffix(channel, ".md")) {
				return cli.BadUsage("--channel is %q, want cards, or a document such as /plans/a.md", channel)
			}
			a.Lenient = true // a client would lose the server because of a file of the folder
			t, err := a.Telemetry(ctx, f.telemetry, slog.LevelWarn)
			if err != nil {
				return err
			}
			defer t.Close()
			folder, err := a.host(ctx, "mcp", "", &f, func(o *host.Options) { o.Telemetry, o.Channel = t, channel })
			if err != nil {
				return err
			}
			err = folder.Tools.ServeStdio(ctx, a.Stdin, a.Out)
			closeErr := folder.Close()
			if ctx.Err() != nil || errors.Is(err, syscall.EPIPE) {
				return nil // this is how a session ends
			}
			if err == nil {
				err = closeErr
			}
			return err
		}))
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&rateLimit, "rate-limit", false, "limit the calls per minute, as cairn serve does")
	cmd.Flags().BoolVar(&noRateLimit, "no-rate-limit", false, "")
	cmd.Flags().Lookup("no-rate-limit").Hidden = true
	cmd.Flags().StringVar(&channel, "channel", "", "tasks for dag tools without a channel: cards, or a document such as /plans/a.md (default: dag.channel)")
	a.AddModel(cmd)
	a.AddRerank(cmd)
	return cmd
}
