package observe

import (
	"context"
	"log/slog"
	"time"
)

// Log returns a listener that writes a line per call: calls of tools at info, HTTP requests at
// debug unless they are refused or fail. It logs arguments only if arguments is set.
func Log(to *slog.Logger, arguments bool) Listener { return logger{log: to, arguments: arguments} }

type logger struct {
	Silent
	log       *slog.Logger
	arguments bool
}

// maxArguments bounds the logged arguments of a call, in bytes.
const maxArguments = 1024

// End implements Listener.
func (l logger) End(ctx context.Context, c *Call, o Outcome, took time.Duration) {
	level, message := slog.LevelInfo, "call"
	if c.Tool == "" {
		message = "request"
		if o.Status == OK {
			level = slog.LevelDebug
		}
	}
	if o.Status == Failed {
		level = slog.LevelWarn
	}
	if !l.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 11)
	attrs = append(attrs, slog.String("id", c.ID))
	if c.Tool != "" {
		attrs = append(attrs, slog.String("tool", c.Tool))
	} else {
		attrs = append(attrs, slog.String("method", c.Method), slog.String("route", c.Route))
	}
	if c.Workspace != "" {
		attrs = append(attrs, slog.String("workspace", c.Workspace))
	}
	attrs = append(attrs, slog.String("status", o.Status))
	if o.Code != 0 {
		attrs = append(attrs, slog.Int("code", o.Code))
	}
	attrs = append(attrs, slog.Float64("took_ms", float64(took.Microseconds())/1000))
	if c.TraceID != "" {
		attrs = append(attrs, slog.String("trace", c.TraceID))
	}
	if c.Token != "" {
		attrs = append(attrs, slog.String("token", c.Token))
	}
	if c.Remote != "" {
		attrs = append(attrs, slog.String("remote", c.Remote))
	}
	if l.arguments && len(c.Arguments) > 0 {
		attrs = append(attrs, slog.String("arguments", string(c.Arguments[:min(len(c.Arguments), maxArguments)])))
	}
	l.log.LogAttrs(ctx, level, message, attrs...)
}
