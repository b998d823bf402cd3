package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"cairn/internal/observe"
	"cairn/internal/profile"
	"cairn/internal/tracing"
	"cairn/internal/workspace"
)

// seeFlags say what a command that runs for long lets be seen of it.
type seeFlags struct {
	format, level string
	queries       bool
	pprof, otlp   string
}

// add is for every such command.
func (f *seeFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.format, "log-format", "", "of the log on standard error: text or json (default: log.format, text)")
	fs.StringVar(&f.level, "log-level", "", "least of it: debug, info, warn or error (default: log.level)")
	fs.StringVar(&f.pprof, "pprof", "", "serve Go's profiles on this address of loopback, such as 127.0.0.1:6060")
}

// addCalls is for those that answer calls.
func (f *seeFlags) addCalls(fs *pflag.FlagSet) {
	f.add(fs)
	fs.BoolVar(&f.queries, "log-queries", false, "log what is asked for as well (also CAIRN_LOG_QUERIES=1)")
	fs.StringVar(&f.otlp, "otlp", "", "send traces to this OTLP receiver over HTTP, such as http://127.0.0.1:4318 (also OTEL_EXPORTER_OTLP_ENDPOINT)")
}

// sight is what a running command lets be seen.
type sight struct {
	log      *slog.Logger
	tracer   *tracing.Tracer // nil without an endpoint
	profiles *profile.Server // nil without an address
	queries  bool
}

// see opens it. standard is the command's level, where nobody asks for another.
func (a *app) see(ctx context.Context, f seeFlags, cfg workspace.LogConfig, standard slog.Level) (_ *sight, err error) {
	s := &sight{queries: f.queries || os.Getenv("CAIRN_LOG_QUERIES") == "1"}
	o := &slog.HandlerOptions{Level: standard}
	if name := cmp.Or(f.level, cfg.Level); name != "auto" {
		var level slog.Level
		switch name {
		case "debug", "info", "warn", "error":
			_ = level.UnmarshalText([]byte(name)) // knows all of these
		default:
			return nil, badUsage("--log-level: %q, want {debug,info,warn,error}", name)
		}
		o.Level = level
	}
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

// calls listens to calls and requests: first what keeps traces, so that the log
// can name them.
func (s *sight) calls(counts observe.Listener) observe.Listener {
	return observe.Join(s.traces(), counts, observe.Log(s.log, s.queries))
}

// traces listens for the sake of traces; nil where none are kept.
func (s *sight) traces() observe.Listener {
	if s.tracer == nil {
		return nil // a nil *Tracer in an interface would not be nil
	}
	return s.tracer
}

// close sends what is left of traces, for at most closeLimit.
func (s *sight) close() {
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
		s.log.Warn("ending what was to be seen", "error", err)
	}
}
