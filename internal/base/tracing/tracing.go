// Package tracing sends OpenTelemetry traces of requests over OTLP. Traces never
// contain queries or results.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"cairn/internal/base/observe"
)

// Options configures Open.
type Options struct {
	// Endpoint is the base URL of an OTLP receiver over HTTP, such as
	// http://127.0.0.1:4318; traces go to its /v1/traces. "" means the endpoint of
	// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT. The other OTEL_
	// variables of the exporter and of sampling always apply.
	Endpoint string
	// Getenv reads the environment like os.Getenv.
	Getenv func(string) string
	// Version is the server's version.
	Version string
	// Logger receives errors of sending.
	Logger *slog.Logger
}

// Tracer is an observe.Listener that records spans.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// Open starts tracing. Without an endpoint it returns nil and no error. The
// caller closes the Tracer.
func Open(ctx context.Context, o Options) (*Tracer, error) {
	target, err := endpoint(o)
	if target == nil || err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx, target...)
	if err != nil {
		return nil, fmt.Errorf("preparing traces: %w", err)
	}
	// The library reports send errors only to this handler.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Logger.Warn("sending traces", "error", err) }))
	return open(sdktrace.NewBatchSpanProcessor(exporter), o.Version), nil
}

// endpoint returns the options that name the endpoint, nil without one.
func endpoint(o Options) ([]otlptracehttp.Option, error) {
	if o.Endpoint == "" {
		configured := o.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" || o.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
		if !configured || strings.EqualFold(o.Getenv("OTEL_SDK_DISABLED"), "true") || o.Getenv("OTEL_TRACES_EXPORTER") == "none" {
			return nil, nil
		}
		return []otlptracehttp.Option{}, nil
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the trace endpoint is %q, want a URL such as http://127.0.0.1:4318", o.Endpoint)
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1", "traces")
	}
	return []otlptracehttp.Option{otlptracehttp.WithEndpointURL(u.String())}, nil
}

func open(p sdktrace.SpanProcessor, version string) *Tracer {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "cairn"), attribute.String("service.version", version))))
	return &Tracer{provider: provider, tracer: provider.Tracer("cairn")}
}

// Close sends the remaining spans, until ctx ends.
func (t *Tracer) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

var propagator = propagation.TraceContext{}

// Begin implements observe.Listener: it starts the span of a call. The parent is the span in
// the call's trace headers, or else the span of the HTTP request.
func (t *Tracer) Begin(ctx context.Context, c *observe.Call) context.Context {
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	if parent := propagator.Extract(context.Background(), propagation.MapCarrier{"traceparent": c.TraceParent, "tracestate": c.TraceState}); trace.SpanContextFromContext(parent).IsValid() {
		remote := trace.SpanContextFromContext(parent)
		enclosing := trace.SpanFromContext(ctx)
		if have, ok := enclosing.(sdktrace.ReadOnlySpan); ok && have.Parent().TraceID() == remote.TraceID() && have.Parent().SpanID() == remote.SpanID() {
			options = nil // the HTTP request has that parent already
		} else {
			if enclosing.SpanContext().IsValid() {
				options = append(options, trace.WithLinks(trace.Link{SpanContext: enclosing.SpanContext()}))
			}
			ctx = trace.ContextWithRemoteSpanContext(ctx, remote)
		}
	}
	name := c.Method
	if c.Tool != "" {
		name = "tool " + c.Tool
		options = append(options, trace.WithAttributes(attribute.String("gen_ai.tool.name", c.Tool)))
	} else {
		options = append(options, trace.WithAttributes(attribute.String("http.request.method", c.Method)))
	}
	ctx, span := t.tracer.Start(ctx, name, options...)
	if span.IsRecording() {
		c.TraceID = span.SpanContext().TraceID().String()
	}
	return ctx
}

// End implements observe.Listener.
func (t *Tracer) End(ctx context.Context, c *observe.Call, o observe.Outcome, _ time.Duration) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String("cairn.request.id", c.ID), attribute.String("cairn.status", o.Status))
	if c.Workspace != "" {
		span.SetAttributes(attribute.String("cairn.workspace", c.Workspace))
	}
	switch {
	case c.Tool != "" && o.Code != 0:
		span.SetAttributes(attribute.Int("cairn.code", o.Code))
	case c.Tool == "":
		span.SetAttributes(attribute.Int("http.response.status_code", o.Code))
		if c.Route != "" {
			if name := c.Route; strings.Contains(name, " ") { // with the method
				span.SetName(name)
			} else {
				span.SetName(c.Method + " " + name)
			}
			span.SetAttributes(attribute.String("http.route", c.Route))
		}
	}
	if o.Status == observe.Failed {
		span.SetStatus(codes.Error, http.StatusText(http.StatusInternalServerError))
	}
	span.End()
}

// Stage implements observe.Listener.
func (t *Tracer) Stage(ctx context.Context, s observe.Stage, start time.Time, took time.Duration) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return
	}
	_, span := t.tracer.Start(ctx, s.String(), trace.WithTimestamp(start))
	span.End(trace.WithTimestamp(start.Add(took)))
}

// Cached implements observe.Listener.
func (t *Tracer) Cached(ctx context.Context, hit bool) {
	trace.SpanFromContext(ctx).SetAttributes(attribute.Bool("cairn.query_cache.hit", hit))
}
