package cli

import (
	"cmp"
	"context"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"cairn/internal/face/host"
)

// Servers are the flags for the servers of question tasks.
type Servers host.StageServers

// Add adds the flags for the stores.
func (f *Servers) Add(fs *pflag.FlagSet) {
	fs.StringVar(&f.Redis, "redis", "", "keep active question tasks in redis://HOST:6379/0 (also CAIRN_REDIS); needs --postgres")
	fs.StringVar(&f.Postgres, "postgres", "", "keep question tasks and their history in postgres://USER@HOST:5432/DATABASE (also CAIRN_POSTGRES)")
}

// AddQueue adds the flag for the queue.
func (f *Servers) AddQueue(fs *pflag.FlagSet) {
	fs.StringVar(&f.AMQP, "amqp", "", "send the stages of question tasks to workers through RabbitMQ at amqp://USER@HOST:5672/ (also CAIRN_AMQP)")
}

// Addresses returns the addresses from the flags, or else from the environment. It returns a
// usage error for Redis without Postgres.
func (f *Servers) Addresses() (host.StageServers, error) {
	at := host.StageServers{
		Redis:    cmp.Or(f.Redis, os.Getenv("CAIRN_REDIS")),
		Postgres: cmp.Or(f.Postgres, os.Getenv("CAIRN_POSTGRES")),
		AMQP:     cmp.Or(f.AMQP, os.Getenv("CAIRN_AMQP")),
	}
	if at.Redis != "" && at.Postgres == "" {
		return at, BadUsage("--redis needs --postgres, which keeps what Redis may lose")
	}
	return at, nil
}

// MaxWorkers bounds the stages that one process works on at the same time.
const MaxWorkers = 256

// TelemetryFlags are the flags for the log, profiles and traces of a long-running command.
type TelemetryFlags struct {
	format, level string
	queries       bool
	pprof, otlp   string
}

// Add adds the flags of every long-running command.
func (f *TelemetryFlags) Add(fs *pflag.FlagSet) {
	ChoiceVar(fs, &f.format, "log-format", "format of the log on standard error: text or json (default: log.format, text)", "text", "json")
	ChoiceVar(fs, &f.level, "log-level", "lowest level of the log: debug, info, warn or error (default: log.level)", "debug", "info", "warn", "error")
	fs.StringVar(&f.pprof, "pprof", "", "serve Go's profiles on this loopback address, such as 127.0.0.1:6060")
}

// AddCalls adds these flags and those of commands that answer calls.
func (f *TelemetryFlags) AddCalls(fs *pflag.FlagSet) {
	f.Add(fs)
	fs.BoolVar(&f.queries, "log-queries", false, "also log queries (also CAIRN_LOG_QUERIES=1)")
	fs.StringVar(&f.otlp, "otlp", "", "send traces to this OTLP receiver over HTTP, such as http://127.0.0.1:4318 (also OTEL_EXPORTER_OTLP_ENDPOINT)")
}

// Telemetry opens the log, profiles and traces. level is the command's default, which the
// configuration of the folder can change.
func (a *App) Telemetry(ctx context.Context, f TelemetryFlags, level slog.Level) (*host.Telemetry, error) {
	_, cfg, err := a.Choose()
	if err != nil {
		return nil, err
	}
	o := host.TelemetryOptions{Log: a.Out.Notes, Level: level, Queries: f.queries || os.Getenv("CAIRN_LOG_QUERIES") == "1", Pprof: f.pprof, OTLP: f.otlp, Version: a.Version,
		JSON: cmp.Or(f.format, cfg.Log.Format) == "json"}
	if name := cmp.Or(f.level, cfg.Log.Level); name != "auto" {
		_ = o.Level.UnmarshalText([]byte(name)) // never fails: both are checked
	}
	t, err := host.OpenTelemetry(ctx, o)
	if err != nil {
		return nil, &UsageError{err}
	}
	return t, nil
}
