package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/workspace"
	"cairn/retriever"
	"cairn/tools"
)

func (a *app) mcpCommand() *cobra.Command {
	var noRateLimit, noIndex bool
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the tools to an agent over MCP on standard input and output",
		Long: `Serve the tools to an agent over MCP on standard input and output.

The folder is indexed in the background from the start; keyword search answers
while vectors are still being made.`,
		Args: cobra.NoArgs,
		RunE: a.command(func(ctx context.Context, _ []string) error { return a.mcp(ctx, noRateLimit, noIndex) }),
	}
	cmd.Flags().BoolVar(&noRateLimit, "no-rate-limit", false, "do not limit calls a minute (also CAIRN_RATE_LIMIT=off)")
	cmd.Flags().BoolVar(&noIndex, "no-index", false, "do not index at the start")
	a.model.add(cmd)
	return cmd
}

// closeLimit bounds closing the stores after the session: the process has to
// be gone two seconds after its input, and the index survives its end anywhere.
const closeLimit = 500 * time.Millisecond

func (a *app) mcp(ctx context.Context, noRateLimit, noIndex bool) error {
	log := a.logger(slog.LevelWarn)
	w, err := a.open(ctx, "mcp", workspace.Owning, func(o *workspace.Options) {
		o.Background, o.Warm, o.Logger = !noIndex, true, log
	})
	if err != nil {
		return err
	}
	cfg := w.Config()
	server := tools.New(w, &tools.Options{
		Version:     versionName(),
		Logger:      log,
		NoRateLimit: noRateLimit || os.Getenv("CAIRN_RATE_LIMIT") == "off" || !cfg.MCP.RateLimit,
		DefaultMode: retriever.Mode(cfg.Search.DefaultMode),
	})
	err = server.ServeStdio(ctx, a.stdin, a.stdout)
	closed := make(chan error, 1)
	go func() { closed <- w.Close() }()
	select {
	case closeErr := <-closed:
		if err == nil {
			err = closeErr
		}
	case <-time.After(closeLimit):
	}
	if ctx.Err() != nil {
		return nil // a server that is told to end has done its work
	}
	return err
}
