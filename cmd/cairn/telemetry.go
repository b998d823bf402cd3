package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"cairn/internal/config"
	"cairn/internal/host"
)

// telemetryFlags select the log, profiles and traces of a long-running command.
type telemetryFlags struct {
	format, level string
	queries       bool
	pprof, otlp   string
}

// add adds the flags of every such command.
func (f *telemetryFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.format, "log-format", "", "format of the log on standard error: text or json (default: log.format, text)")
	fs.StringVar(&f.level, "log-level", "", "lowest level of the log: debug, info, warn or error (default: log.level)")
	fs.StringVar(&f.pprof, "pprof", "", "serve Go's profiles on this loopback address, such as 127.0.0.1:6060")
}

// addCalls adds the flags of commands that answer calls, too.
func (f *telemetryFlags) addCalls(fs *pflag.FlagSet) {
	f.add(fs)
	fs.BoolVar(&f.queries, "log-queries", false, "log queries, too (also CAIRN_LOG_QUERIES=1)")
	fs.StringVar(&f.otlp, "otlp", "", "send traces to this OTLP receiver over HTTP, such as http://127.0.0.1:4318 (also OTEL_EXPORTER_OTLP_ENDPOINT)")
}

// telemetry opens the log, profiles and traces. level is the command's default.
func (a *app) telemetry(ctx context.Context, f telemetryFlags, cfg config.Log, level slog.Level) (*host.Telemetry, error) {
	o := host.TelemetryOptions{Log: a.stderr, Level: level, Queries: f.queries || os.Getenv("CAIRN_LOG_QUERIES") == "1", Pprof: f.pprof, OTLP: f.otlp, Version: versionName()}
	switch name := cmp.Or(f.level, cfg.Level); name {
	case "auto":
	case "debug", "info", "warn", "error":
		_ = o.Level.UnmarshalText([]byte(name)) // knows all of these
	default:
		return nil, badUsage("--log-level: %q, want {debug,info,warn,error}", name)
	}
	switch format := cmp.Or(f.format, cfg.Format); format {
	case "text", "json":
		o.JSON = format == "json"
	default:
		return nil, badUsage("--log-format: %q, want {text,json}", format)
	}
	t, err := host.OpenTelemetry(ctx, o)
	if err != nil {
		return nil, &usageError{err}
	}
	return t, nil
}
