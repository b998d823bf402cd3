// Package observe tells whoever listens how the work on requests goes: which
// calls there were, how long each took and its stages, and what came of it. It
// knows none of its listeners, and where there are none it costs a look into
// the context.
package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"
)

// Stage is a part of the work on a search or a reading.
type Stage uint8

// The stages. The keyword leg runs at the same time as embedding and the vector
// leg; all others follow one another.
const (
	Keyword Stage = iota // the keyword index is searched
	Embed                // the model reads the query
	Vectors              // the vector index is searched
	Blend                // the legs become one ranking
	Graph                // what is used together adjusts it
	Page                 // the texts of results are read and shown
	Fit                  // the token budget is spent on them
	Read                 // a document is opened and cut
	Stages               // how many stages there are
)

var stageNames = [Stages]string{"keyword", "embed", "vectors", "blend", "graph", "page", "fit", "read"}

func (s Stage) String() string {
	if s < Stages {
		return stageNames[s]
	}
	return fmt.Sprintf("stage %d", uint8(s))
}

// Call is one use of a tool, or one request over HTTP.
type Call struct {
	// ID tells calls apart; a tool's is that of the request it came with.
	ID string
	// Tool is the tool's name, "" for a request over HTTP.
	Tool string
	// Method and Route are those of a request over HTTP. Route is the pattern
	// it was found under, "" until it has been, and for one that is refused before.
	Method, Route string
	// Workspace is the name it is served under; "" where there is only one.
	Workspace string
	// Arguments are a tool's. They hold what people look for: who listens must
	// not tell them unless asked to.
	Arguments json.RawMessage
	// TraceParent and TraceState are as in W3C Trace Context, as they came.
	TraceParent, TraceState string
	// TraceID is that of the trace the call is part of, once one is kept.
	TraceID string
}

// Outcome is what became of a call.
type Outcome struct {
	// Status is one of the constants below.
	Status string
	// Code is the status of HTTP, or the code of a tool's failure; 0 for none.
	Code int
	// Stream is set for an answer that was held open for events: how long says
	// nothing of the work.
	Stream bool
}

// The values of Outcome.Status.
const (
	OK        = "ok"
	Refused   = "refused"   // the caller asked for what cannot be
	Limited   = "limited"   // the caller asks too often
	Cancelled = "cancelled" // the caller went away
	Failed    = "failed"    // something is wrong here
)

// Listener is told of the work on requests. Its methods are called by any
// number of goroutines at the same time, on the way of the answer: they must be quick.
type Listener interface {
	// Begin is told that a call begins, and returns the context it goes on
	// with. c may be completed until End.
	Begin(ctx context.Context, c *Call) context.Context
	// End is told that it has ended; ctx comes from Begin.
	End(ctx context.Context, c *Call, o Outcome, took time.Duration)
	// Stage is told of a stage that has ended.
	Stage(ctx context.Context, s Stage, start time.Time, took time.Duration)
	// Cached is told whether the vector of a query was still in memory.
	Cached(ctx context.Context, hit bool)
}

// Join returns a listener that tells all of them, in order; nil ones are left
// out, and without any other it is nil.
func Join(all ...Listener) Listener {
	var some several
	for _, l := range all {
		if l != nil {
			some = append(some, l)
		}
	}
	switch len(some) {
	case 0:
		return nil
	case 1:
		return some[0]
	}
	return some
}

type several []Listener

func (s several) Begin(ctx context.Context, c *Call) context.Context {
	for _, l := range s {
		ctx = l.Begin(ctx, c)
	}
	return ctx
}

func (s several) End(ctx context.Context, c *Call, o Outcome, took time.Duration) {
	for _, l := range s {
		l.End(ctx, c, o, took)
	}
}

func (s several) Stage(ctx context.Context, stage Stage, start time.Time, took time.Duration) {
	for _, l := range s {
		l.Stage(ctx, stage, start, took)
	}
}

func (s several) Cached(ctx context.Context, hit bool) {
	for _, l := range s {
		l.Cached(ctx, hit)
	}
}

// Silent is a Listener that does nothing, for those that care for a part.
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

// With has l told of the stages of what is done with the context, beside who
// is told already. Nil changes nothing.
func With(ctx context.Context, l Listener) context.Context {
	if l == nil {
		return ctx
	}
	return context.WithValue(ctx, listenerKey{}, Join(listening(ctx), l))
}

func listening(ctx context.Context) Listener {
	l, _ := ctx.Value(listenerKey{}).(Listener)
	return l
}

// Timer measures one stage.
type Timer struct {
	listener Listener
	start    time.Time
	stage    Stage
}

// Begin starts a stage. Where nobody listens the clock is not looked at.
func Begin(ctx context.Context, s Stage) Timer {
	t := Timer{listener: listening(ctx), stage: s}
	if t.listener != nil {
		t.start = time.Now()
	}
	return t
}

// End ends the stage; ctx is that of Begin.
func (t Timer) End(ctx context.Context) {
	if t.listener != nil {
		t.listener.Stage(ctx, t.stage, t.start, time.Since(t.start))
	}
}

// Cached tells whether the vector of a query was still in memory.
func Cached(ctx context.Context, hit bool) {
	if l := listening(ctx); l != nil {
		l.Cached(ctx, hit)
	}
}

// IDHeader is the header that names a request over HTTP, and its answer.
const IDHeader = "X-Request-Id"

type idKey struct{}

// WithID names the request that a context belongs to.
func WithID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, idKey{}, id)
}

// ID is what WithID was given, else "".
func ID(ctx context.Context) string {
	id, _ := ctx.Value(idKey{}).(string)
	return id
}

// process tells the calls of one process from those of another in one log.
var (
	process = strconv.FormatUint(rand.Uint64()|1<<63, 36)[:6]
	calls   atomic.Uint64
)

// NewID names a call.
func NewID() string { return process + "-" + strconv.FormatUint(calls.Add(1), 36) }

// id is what another program may call a request without spoiling a log.
var id = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

// IDOf is the ID a request came with, or a new one.
func IDOf(given string) string {
	if id.MatchString(given) {
		return given
	}
	return NewID()
}
