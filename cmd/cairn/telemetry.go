package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"cairn/internal/config"
	"cairn/internal/observe"
	"cairn/internal/profile"
	"cairn/internal/tracing"
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

// telemetry is the log, profiles and traces of a running command.
type telemetry struct {
	log      *slog.Logger
	tracer   *tracing.Tracer // nil without an endpoint
	profiles *profile.Server // nil without an address
	queries  bool
}

// telemetry opens them. level is the default level of the log.
func (a *app) telemetry(ctx context.Context, f telemetryFlags, cfg config.Log, level slog.Level) (_ *telemetry, err error) {
	s := &telemetry{queries: f.queries || os.Getenv("CAIRN_LOG_QUERIES") == "1"}
	if name := cmp.Or(f.level, cfg.Level); name != "auto" {
		switch name {
		case "debug", "info", "warn", "error":
			_ = level.UnmarshalText([]byte(name)) // knows all of these
		default:
			return nil, badUsage("--log-level: %q, want {debug,info,warn,error}", name)
		}
	}
	o := &slog.HandlerOptions{Level: level}
	switch format := cmp.Or(f.format, cfg.Format); format {
	case "text":
		s.log = slog.New(slog.NewTextHandler(a.stderr, o))
	case "json":
		s.log = slog.New(slog.NewJSONHandler(a.stderr, o))
	default:
		return nil, badUsage("--log-format: %q, want {text,json}", format)
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if f.pprof != "" {
		if s.profiles, err = profile.Open(ctx, f.pprof); err != nil {
			return nil, badUsage("--pprof: %w", err)
		}
		s.log.Info("serving profiles", "url", "http://"+s.profiles.Addr().String()+"/debug/pprof/")
	}
	if s.tracer, err = tracing.Open(ctx, tracing.Options{Endpoint: f.otlp, Getenv: os.Getenv, Version: versionName(), Logger: s.log}); err != nil {
		return nil, badUsage("--otlp: %w", err)
	}
	return s, nil
}

// calls returns the listener of calls and requests. Traces come first, so that the
// log can name them.
func (s *telemetry) calls(counts observe.Listener) observe.Listener {
	return observe.Join(s.traces(), counts, observe.Log(s.log, s.queries))
}

// traces returns the listener that keeps traces, nil if none are kept.
func (s *telemetry) traces() observe.Listener {
	if s.tracer == nil {
		return nil // a nil *Tracer in an interface would not be nil
	}
	return s.tracer
}

// close sends the remaining traces, for at most closeLimit.
func (s *telemetry) close() {
	var err error
	if s.tracer != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		err = s.tracer.Close(ctx)
	}
	if s.profiles != nil {
		err = errors.Join(err, s.profiles.Close())
	}
	if err != nil {
		s.log.Warn("closing traces and profiles", "error", err)
	}
}
