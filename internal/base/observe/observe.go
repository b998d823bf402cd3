// Package observe reports the progress of requests to listeners. It keeps no counts, traces or
// logs itself. Without a listener it costs one lookup in the context.
package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// Stage is a timed step of a search or a read.
type Stage uint8

// The stages. The keyword leg runs at the same time as embedding and the vector
// leg; all others follow one another.
const (
	Keyword Stage = iota // search the keyword index
	Embed                // embed the query
	Vectors              // search the vector index
	Blend                // merge the legs into one ranking
	Graph                // adjust the ranking by co-usage
	Rerank               // read the best passages again with the re-ranker
	Page                 // read the texts of the results
	Fit                  // fit the results into the token budget
	Read                 // read a document or a part of one
	Stages               // the number of stages
)

var stageNames = [Stages]string{"keyword", "embed", "vectors", "blend", "graph", "rerank", "page", "fit", "read"}

func (s Stage) String() string {
	if s < Stages {
		return stageNames[s]
	}
	return fmt.Sprintf("stage %d", uint8(s))
}

// Call is one call of a tool, or one HTTP request.
type Call struct {
	// ID names the call. A tool call that came over HTTP has the request's ID.
	ID string
	// Tool is the tool's name, "" for an HTTP request.
	Tool string
	// Method and Route describe an HTTP request. Route is the pattern that
	// matched it, "" before routing and for a request refused before routing.
	Method, Route string
	// Workspace is the name of the workspace; "" if there is only one.
	Workspace string
	// Token is the name of the caller's token, Remote the caller's address; "" without
	// one.
	Token, Remote string
	// Arguments are the tool's arguments. They contain users' queries: a listener must not
	// record them unless the operator has enabled that.
	Arguments json.RawMessage
	// TraceParent and TraceState are the caller's headers of W3C Trace Context.
	TraceParent, TraceState string
	// TraceID names the trace that records the call, "" without one.
	TraceID string
}

// Outcome is the result of a call.
type Outcome struct {
	// Status is one of the constants below.
	Status string
	// Code is the HTTP status, or the code of a tool's failure; 0 for none.
	Code int
	// Stream is set for a stream of events, whose duration does not measure work.
	Stream bool
}

// The values of Outcome.Status.
const (
	OK        = "ok"
	Refused   = "refused"   // the request was invalid or not permitted
	Limited   = "limited"   // the caller exceeded a rate or capacity limit
	Cancelled = "cancelled" // the caller left
	Failed    = "failed"    // the server failed
)

// Listener receives events about calls. Its methods are called concurrently and
// while a client waits for its answer, so they must not block.
type Listener interface {
	// Begin starts a call and returns the context to continue with. The caller
	// may set further fields of c until End.
	Begin(ctx context.Context, c *Call) context.Context
	// End ends a call; ctx comes from Begin.
	End(ctx context.Context, c *Call, o Outcome, took time.Duration)
	// Stage reports a stage that has ended.
	Stage(ctx context.Context, s Stage, start time.Time, took time.Duration)
	// Cached reports whether the vector of a query was in the cache.
	Cached(ctx context.Context, hit bool)
}

// Join returns a listener that passes each event to the listeners, in order. It skips nil
// listeners, and returns nil if all are nil.
func Join(all ...Listener) Listener {
	some := joined(slices.DeleteFunc(slices.Clone(all), func(l Listener) bool { return l == nil }))
	switch len(some) {
	case 0:
		return nil
	case 1:
		return some[0]
	}
	return some
}

type joined []Listener

func (s joined) Begin(ctx context.Context, c *Call) context.Context {
	for _, l := range s {
		ctx = l.Begin(ctx, c)
	}
	return ctx
}

func (s joined) End(ctx context.Context, c *Call, o Outcome, took time.Duration) {
	for _, l := range s {
		l.End(ctx, c, o, took)
	}
}

func (s joined) Stage(ctx context.Context, stage Stage, start time.Time, took time.Duration) {
	for _, l := range s {
		l.Stage(ctx, stage, start, took)
	}
}

func (s joined) Cached(ctx context.Context, hit bool) {
	for _, l := range s {
		l.Cached(ctx, hit)
	}
}

// Silent is a Listener that does nothing, for embedding in listeners of some events.
type Silent struct{}

// Begin implements Listener.
func (Silent) Begin(ctx context.Context, _ *Call) context.Context { return ctx }

// End implements Listener.
func (Silent) End(context.Context, *Call, Outcome, time.Duration) {}

// Stage implements Listener.
func (Silent) Stage(context.Context, Stage, time.Time, time.Duration) {}

// Cached implements Listener.
func (Silent) Cached(context.Context, bool) {}

type listenerKey struct{}

// With adds l to the listeners carried by ctx. A nil l changes nothing.
func With(ctx context.Context, l Listener) context.Context {
	if l == nil {
		return ctx
	}
	return context.WithValue(ctx, listenerKey{}, Join(listener(ctx), l))
}

func listener(ctx context.Context) Listener {
	l, _ := ctx.Value(listenerKey{}).(Listener)
	return l
}

// Timer measures one stage.
type Timer struct {
	listener Listener
	start    time.Time
	stage    Stage
}

// Begin starts a stage. It does not read the clock without a listener.
func Begin(ctx context.Context, s Stage) Timer {
	t := Timer{listener: listener(ctx), stage: s}
	if t.listener != nil {
		t.start = time.Now()
	}
	return t
}

// End ends the stage. ctx is the context of Begin.
func (t Timer) End(ctx context.Context) {
	if t.listener != nil {
		t.listener.Stage(ctx, t.stage, t.start, time.Since(t.start))
	}
}

// Cached reports whether the vector of a query was in the cache.
func Cached(ctx context.Context, hit bool) {
	if l := listener(ctx); l != nil {
		l.Cached(ctx, hit)
	}
}

// IDHeader is the header with the ID of an HTTP request and of its response.
const IDHeader = "X-Request-Id"

// The headers in which the server passes the caller of a request to tools, which see the
// headers but not the context. The server replaces such headers of a client.
const (
	TokenHeader  = "X-Cairn-Token-Name"
	RemoteHeader = "X-Cairn-Remote"
)

type idKey struct{}

// WithID returns a context that carries the ID of a request.
func WithID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, idKey{}, id)
}

// ID returns the ID that WithID set, or "".
func ID(ctx context.Context) string {
	id, _ := ctx.Value(idKey{}).(string)
	return id
}

// process distinguishes the calls of several processes that share a log.
var (
	process = strconv.FormatUint(rand.Uint64()|1<<63, 36)[:6]
	calls   atomic.Uint64
)

// NewID returns a new ID for a call.
func NewID() string { return process + "-" + strconv.FormatUint(calls.Add(1), 36) }

// id matches IDs from other programs that are safe in a log.
var id = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

// IDOf returns the ID that a client has sent if it is valid, or else a new one.
func IDOf(sent string) string {
	if id.MatchString(sent) {
		return sent
	}
	return NewID()
}

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
	attrs := append(make([]slog.Attr, 0, 11), slog.String("id", c.ID))
	known := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	known("tool", c.Tool)
	if c.Tool == "" {
		attrs = append(attrs, slog.String("method", c.Method), slog.String("route", c.Route))
	}
	known("workspace", c.Workspace)
	attrs = append(attrs, slog.String("status", o.Status))
	if o.Code != 0 {
		attrs = append(attrs, slog.Int("code", o.Code))
	}
	attrs = append(attrs, slog.Float64("took_ms", float64(took.Microseconds())/1000))
	known("trace", c.TraceID)
	known("token", c.Token)
	known("remote", c.Remote)
	if l.arguments {
		known("arguments", string(c.Arguments[:min(len(c.Arguments), maxArguments)]))
	}
	l.log.LogAttrs(ctx, level, message, attrs...)
}
