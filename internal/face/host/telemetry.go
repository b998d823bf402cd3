package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"cairn/internal/base/observe"
	"cairn/internal/base/tracing"
)

// TelemetryOptions configures OpenTelemetry.
type TelemetryOptions struct {
	Log     io.Writer
	Level   slog.Level
	JSON    bool   // format of the log
	Queries bool   // log queries, too
	Pprof   string // loopback address of Go's profiles; "" disables them
	OTLP    string // receiver of traces; "" means that of the environment
	Version string // of cairn
}

// Telemetry holds the log, the profiles and the traces of a process.
type Telemetry struct {
	Log *slog.Logger

	tracer   *tracing.Tracer // nil without a receiver
	profiles *http.Server    // nil without an address
	queries  bool
}

// OpenTelemetry opens the log, and the profiles and traces if they are configured. Its
// errors name the flags.
func OpenTelemetry(ctx context.Context, o TelemetryOptions) (*Telemetry, error) {
	options := &slog.HandlerOptions{Level: o.Level}
	t := &Telemetry{Log: slog.New(slog.NewTextHandler(o.Log, options)), queries: o.Queries}
	if o.JSON {
		t.Log = slog.New(slog.NewJSONHandler(o.Log, options))
	}
	var err error
	if o.Pprof != "" {
		if t.profiles, err = serveProfiles(ctx, o.Pprof); err != nil {
			return nil, fmt.Errorf("--pprof: %w", err)
		}
		t.Log.Info("serving profiles", "url", "http://"+t.profiles.Addr+"/debug/pprof/")
	}
	if t.tracer, err = tracing.Open(ctx, tracing.Options{Endpoint: o.OTLP, Getenv: os.Getenv, Version: o.Version, Logger: t.Log}); err != nil {
		t.Close()
		return nil, fmt.Errorf("--otlp: %w", err)
	}
	return t, nil
}

// Calls returns the listener of calls and requests. counts may be nil. The listener of
// traces comes first, so that the log contains the IDs of the traces.
func (t *Telemetry) Calls(counts observe.Listener) observe.Listener {
	return observe.Join(t.Traces(), counts, observe.Log(t.Log, t.queries))
}

// Traces returns the listener that records traces, nil if there is no receiver.
func (t *Telemetry) Traces() observe.Listener {
	if t.tracer == nil {
		return nil // a nil *Tracer in an interface would not be nil
	}
	return t.tracer
}

// Close sends the remaining traces, for at most CloseLimit, and stops the profiles.
func (t *Telemetry) Close() {
	var err error
	if t.tracer != nil {
		ctx, cancel := context.WithTimeout(context.Background(), CloseLimit)
		defer cancel()
		err = t.tracer.Close(ctx)
	}
	if t.profiles != nil {
		err = errors.Join(err, t.profiles.Close())
	}
	if err != nil {
		t.Log.Warn("closing traces and profiles", "error", err)
	}
}
