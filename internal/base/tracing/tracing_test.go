package tracing

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"cairn/internal/base/observe"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	parent  = "00-" + traceID + "-00f067aa0ba902b7-01"
	other   = "00-5bf92f3577b34da6a3ce929d0e0e4736-10f067aa0ba902b7-01"
)

// kept runs fn with a tracer and returns the spans by name.
func kept(t *testing.T, fn func(*Tracer)) map[string]tracetest.SpanStub {
	t.Helper()
	memory := tracetest.NewInMemoryExporter()
	tracer := open(sdktrace.NewSimpleSpanProcessor(memory), "1.2.3")
	fn(tracer)
	spans := map[string]tracetest.SpanStub{}
	for _, s := range memory.GetSpans() {
		spans[s.Name] = s
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return spans
}

func value(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// TestSpans: a request, the tool it calls and the stages of that are one trace.
func TestSpans(t *testing.T) {
	var logged observe.Call
	spans := kept(t, func(tr *Tracer) {
		request := &observe.Call{ID: "r1", Method: "POST", TraceParent: parent, TraceState: "a=b"}
		outer := tr.Begin(t.Context(), request)
		tool := &observe.Call{ID: "r1", Tool: "read_context", Workspace: "w", TraceParent: parent, Arguments: []byte(`{"query":"secret"}`)}
		inner := observe.With(tr.Begin(outer, tool), tr)
		observe.Cached(inner, false)
		tr.Stage(inner, observe.Embed, time.Unix(100, 0), 3*time.Millisecond)
		tr.End(inner, tool, observe.Outcome{Status: observe.Refused, Code: 1001}, 0)
		request.Route = "/mcp"
		tr.End(outer, request, observe.Outcome{Status: observe.Failed, Code: 500}, 0)
		logged = *tool
	})
	request, tool, stage := spans["POST /mcp"], spans["tool read_context"], spans["embed"]
	if len(spans) != 3 {
		t.Fatalf("spans %v, want three", spans)
	}
	if got := request.Parent.SpanID().String(); got != "00f067aa0ba902b7" || !request.Parent.IsRemote() || request.Parent.TraceState().String() != "a=b" {
		t.Errorf("the request's parent is %s, want the caller's span", got)
	}
	if tool.Parent.SpanID() != request.SpanContext.SpanID() || stage.Parent.SpanID() != tool.SpanContext.SpanID() {
		t.Error("the stage is not below the tool, or that not below the request")
	}
	for name, s := range spans {
		if got := s.SpanContext.TraceID().String(); got != traceID {
			t.Errorf("%s is of trace %s, want the caller's", name, got)
		}
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.String(), "secret") {
				t.Errorf("%s tells what was asked: %v", name, a)
			}
		}
	}
	if got := stage.EndTime.Sub(stage.StartTime); got != 3*time.Millisecond || stage.StartTime.Unix() != 100 {
		t.Errorf("the stage took %s from %s on, want 3ms", got, stage.StartTime)
	}
	for _, c := range []struct {
		span      tracetest.SpanStub
		key, want string
	}{
		{tool, "cairn.query_cache.hit", "false"}, {tool, "gen_ai.tool.name", "read_context"}, {tool, "cairn.workspace", "w"},
		{tool, "cairn.status", "refused"}, {tool, "cairn.code", "1001"}, {tool, "cairn.request.id", "r1"},
		{request, "http.response.status_code", "500"}, {request, "http.route", "/mcp"}, {request, "http.request.method", "POST"},
	} {
		if got := value(c.span, c.key); got != c.want {
			t.Errorf("%s of %s is %q, want %q", c.key, c.span.Name, got, c.want)
		}
	}
	if request.Status.Code.String() != "Error" || tool.Status.Code.String() == "Error" {
		t.Errorf("states %v and %v, want an error of the request alone", request.Status, tool.Status)
	}
	if logged.TraceID != traceID {
		t.Errorf("the call is said to be of trace %q", logged.TraceID)
	}
	if got := request.Resource.String(); got != "service.name=cairn,service.version=1.2.3" {
		t.Errorf("the resource is %s", got)
	}
}

// TestParents: what a call itself names as its parent goes before the request
// it came with, which is then only linked to.
func TestParents(t *testing.T) {
	spans := kept(t, func(tr *Tracer) {
		request := &observe.Call{Method: "POST", Route: "/mcp"}
		outer := tr.Begin(t.Context(), request)
		for name, traceparent := range map[string]string{"named": other, "broken": "00-zz-1-01", "none": ""} {
			c := &observe.Call{Tool: name, TraceParent: traceparent}
			tr.End(tr.Begin(outer, c), c, observe.Outcome{Status: observe.OK}, 0)
		}
		tr.End(outer, request, observe.Outcome{Status: observe.OK, Code: 200}, 0)
		// Not sampled by the caller: nothing is kept.
		c := &observe.Call{Tool: "unsampled", TraceParent: parent[:len(parent)-2] + "00"}
		ctx := observe.With(tr.Begin(t.Context(), c), tr)
		observe.Begin(ctx, observe.Keyword).End(ctx)
		tr.End(ctx, c, observe.Outcome{Status: observe.OK}, 0)
	})
	request := spans["POST /mcp"].SpanContext
	named := spans["tool named"]
	if got := named.Parent.SpanID().String(); got != "10f067aa0ba902b7" || len(named.Links) != 1 || !named.Links[0].SpanContext.Equal(request) {
		t.Errorf("parent %s and links %v, want the named one, and a link to the request", got, named.Links)
	}
	for _, name := range []string{"tool broken", "tool none"} {
		if spans[name].Parent.SpanID() != request.SpanID() {
			t.Errorf("%s is not below the request", name)
		}
	}
	if len(spans) != 4 {
		t.Errorf("%d spans, want 4: one is not sampled", len(spans))
	}
}

// TestExport sends over HTTP to a receiver, as a collector receives.
func TestExport(t *testing.T) {
	got := make(chan *http.Request, 10)
	bodies := make(chan []byte, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- r
		bodies <- text
	}))
	defer receiver.Close()
	var log bytes.Buffer
	for name, c := range map[string]struct {
		endpoint string
		env      map[string]string
		path     string
	}{
		"flag":                   {receiver.URL, nil, "/v1/traces"},
		"flag with a path":       {receiver.URL + "/otlp/", nil, "/otlp/v1/traces"},
		"flag with all of it":    {receiver.URL + "/v1/traces", nil, "/v1/traces"},
		"environment":            {"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.URL}, "/v1/traces"},
		"environment, traces":    {"", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": receiver.URL + "/t"}, "/t"},
		"flag over switched off": {receiver.URL, map[string]string{"OTEL_TRACES_EXPORTER": "none"}, "/v1/traces"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
				t.Setenv(key, c.env[key]) // the exporter reads it by itself
			}
			tr, err := Open(t.Context(), Options{Endpoint: c.endpoint, Getenv: func(k string) string { return c.env[k] }, Version: "1", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil || tr == nil {
				t.Fatalf("Open: %v, %v", tr, err)
			}
			call := &observe.Call{Tool: "status", TraceParent: parent}
			tr.End(tr.Begin(t.Context(), call), call, observe.Outcome{Status: observe.OK}, 0)
			if err := tr.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			r, body := <-got, <-bodies
			id, _ := hex.DecodeString(traceID)
			if r.URL.Path != c.path || r.Header.Get("Content-Type") != "application/x-protobuf" || !bytes.Contains(body, id) || !bytes.Contains(body, []byte("tool status")) {
				t.Errorf("received %s %s, %d bytes, want the span at %s", r.URL.Path, r.Header.Get("Content-Type"), len(body), c.path)
			}
		})
	}
	if log.Len() > 0 {
		t.Errorf("sending went wrong: %s", log.String())
	}
}

// TestOff: without an endpoint there is no tracer, and with one that is none an error.
func TestOff(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"nothing":      nil,
		"disabled":     {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"},
		"not exported": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"},
	} {
		if tr, err := Open(t.Context(), Options{Getenv: func(k string) string { return env[k] }}); tr != nil || err != nil {
			t.Errorf("%s: %v, %v, want neither", name, tr, err)
		}
	}
	for _, bad := range []string{"localhost:4318", "ftp://x", "http://", "::"} {
		if _, err := Open(context.Background(), Options{Endpoint: bad}); err == nil || !strings.Contains(err.Error(), "want a URL such as") {
			t.Errorf("%q: %v, want an error that says what is wanted", bad, err)
		}
	}
}

// TestAwayReceiver: an unreachable receiver is logged and stops nothing else.
func TestAwayReceiver(t *testing.T) {
	receiver := httptest.NewServer(http.NotFoundHandler())
	defer receiver.Close()
	var log bytes.Buffer
	tr, err := Open(t.Context(), Options{Endpoint: receiver.URL, Version: "1", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	call := &observe.Call{Tool: "status"}
	tr.End(tr.Begin(t.Context(), call), call, observe.Outcome{Status: observe.OK}, 0)
	_ = tr.Close(t.Context()) // some versions return it, some log it
	if !strings.Contains(log.String(), "sending traces") {
		t.Errorf("nothing is said of a receiver that refuses: %s", log.String())
	}
}
