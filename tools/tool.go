package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/job"
	"cairn/internal/base/observe"
	"cairn/internal/text/fit"
	"cairn/internal/toolbox/usage"
	"cairn/retriever"
	"cairn/tools/gateway"
)

// tool describes and implements one tool.
type tool struct {
	name, title, description string
	groups                   []Group // the groups that contain it, besides All
	readOnly                 bool
	additive                 bool // changes nothing that exists
	notIdempotent            bool // a repeated call has a further effect
	rate                     rate // zero means unlimited
	openWorld                bool // reaches beyond the folder
	waits                    bool // mostly waits, so it does not count as running
	// administers reports whether a call with the given arguments needs the scope admin.
	// If it is nil, no call does.
	administers func(json.RawMessage) bool
	handler
	noSchema bool // the list has no schema of the answers, which are text or vary
	// bare converts an answer to the result of a direct call. If it is nil, the result is
	// the answer.
	bare func(answer any) any
}

// call is a call of a tool.
type call struct {
	args json.RawMessage
	// id is the ID of the HTTP request, and parent and state are its trace context, unless
	// the context of the call contains them.
	id, parent, state string
	token, remote     string // of the caller over HTTP
}

// find returns the tool of a name that clients can call.
func (s *Server) find(name string) (tool, bool) {
	for _, t := range s.tools {
		if t.name == name {
			return t, true
		}
	}
	return tool{}, false
}

// do runs one call within the limits of a client and reports it to the listener.
func (s *Server) do(ctx context.Context, client string, t tool, c call) (answer any, f *Failure) {
	if l := s.options.Listener; l != nil {
		o := &observe.Call{ID: observe.ID(ctx), Tool: t.name, Workspace: s.options.Workspace, Arguments: c.args, TraceParent: c.parent, TraceState: c.state, Token: c.token, Remote: c.remote}
		if o.ID == "" {
			o.ID = observe.IDOf(c.id)
		}
		start := time.Now()
		ctx = l.Begin(ctx, o)
		defer func() { l.End(ctx, o, outcome(ctx, f), time.Since(start)) }()
	}
	defer func() { f = cmp.Or(s.panicked(t.name, recover()), f) }()
	if t.rate.Burst > 0 && !s.options.NoRateLimit {
		if f := s.limits.allow(client, t.name, t.rate); f != nil {
			return nil, f
		}
	}
	if !t.waits {
		if err := s.running.Acquire(ctx, 1); err != nil {
			return nil, FailureOf(err)
		}
		defer s.running.Release(1)
	}
	answer, err := t.call(ctx, c.args)
	if err == nil {
		if !t.openWorld { // the arguments of one tool of a server are no example for another
			s.examples.keep(client, t.name, c.args)
		}
		return answer, nil
	}
	f = FailureOf(err)
	f.Message = fit.Cut(f.Message, maxMessage) // which may quote an argument
	s.examples.add(client, t.name, f)
	if f.Code == CodeInternal && f.Data == nil && !errors.Is(err, context.Canceled) {
		s.options.Logger.Error("tool failed", "tool", t.name, "error", err)
	}
	return nil, f
}

// maxMessage is the maximum length of the message of a failure in bytes.
const maxMessage = 4000

// panicked logs a panic of a tool or method and returns its failure, nil if cause is nil. The
// panic fails the call and not the process, which has other calls and clients.
func (s *Server) panicked(name string, cause any) *Failure {
	if cause == nil {
		return nil
	}
	s.options.Logger.Error("call panicked", "name", name, "cause", cause, "stack", string(debug.Stack()))
	return &Failure{Code: CodeInternal, Message: fmt.Sprintf("a defect of cairn ended this call: %v", cause)}
}

// ReportLacks calls lacked, see Options.Lacked, after a search that needed vectors. It
// omits "stale", which describes files and not the index.
func ReportLacks(lacked func([]string), q retriever.Query, a *retriever.Answer) {
	if lacked != nil && q.Mode != retriever.Keyword {
		lacked(slices.DeleteFunc(slices.Clone(a.Degraded), func(what string) bool { return what == "stale" }))
	}
}

// outcome returns the outcome of a call for the listener.
func outcome(ctx context.Context, f *Failure) observe.Outcome {
	switch {
	case f == nil:
		return observe.Outcome{Status: observe.OK}
	case errors.Is(ctx.Err(), context.Canceled):
		return observe.Outcome{Status: observe.Cancelled, Code: f.Code}
	case f.Code == CodeRateLimit:
		return observe.Outcome{Status: observe.Limited, Code: f.Code}
	case f.Code == CodeInternal && f.Data == nil:
		return observe.Outcome{Status: observe.Failed, Code: f.Code}
	}
	return observe.Outcome{Status: observe.Refused, Code: f.Code}
}

// newCall returns the call of a request. The trace context comes from the _meta of the
// request, as revision 2026-07-28 defines, or else from its HTTP headers.
func newCall(req mcp.Request, args json.RawMessage) call {
	c := call{args: args}
	meta := req.GetParams().GetMeta()
	c.parent, _ = meta["traceparent"].(string)
	c.state, _ = meta["tracestate"].(string)
	if extra := req.GetExtra(); extra != nil {
		c.id, c.token, c.remote = extra.Header.Get(observe.IDHeader), extra.Header.Get(observe.TokenHeader), extra.Header.Get(observe.RemoteHeader)
		if c.parent == "" {
			c.parent, c.state = extra.Header.Get("traceparent"), extra.Header.Get("tracestate")
		}
	}
	return c
}

// origin is what the context of a call has about its client. Direct calls have only record.
type origin struct {
	text     bool               // the answer may be text, as of tools/call
	progress func(job.Progress) // nil if the client did not request progress
	peer     gateway.Peer       // the client, for calls of other servers
	tasks    bool               // the client declares the Tasks extension
	// record calls add with the session of the client; nil if it is not recorded.
	record func(add func(*usage.Session))
}

type originKey struct{}

func originOf(ctx context.Context) origin {
	r, _ := ctx.Value(originKey{}).(origin)
	return r
}

func withOrigin(ctx context.Context, r origin) context.Context {
	return context.WithValue(ctx, originKey{}, r)
}

// record calls add with the session of a call, if the session is recorded.
func record(ctx context.Context, add func(*usage.Session)) {
	if r := originOf(ctx); r.record != nil {
		r.record(add)
	}
}

// text is an answer that is not structured.
type text string

// wantsText reports whether a call answers with text, which the format json prevents.
func (r origin) wantsText(format choice) bool { return r.text && format == "" }

// answerAs returns an answer as text or as it is.
func answerAs(answer interface{ Text() string }, err error, asText bool) (any, error) {
	switch {
	case err != nil:
		return nil, err
	case asText:
		return text(answer.Text()), nil
	}
	return answer, nil
}
