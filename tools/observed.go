package tools

import (
	"context"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/observe"
	"cairn/retriever"
)

// Observed is an Engine whose callers are not tools, such as pages. Listener receives
// the stages of its work. Tools report theirs to Options.Listener.
type Observed struct {
	Engine
	Listener observe.Listener
	// Lacked is as in Options.
	Lacked func([]string)
}

// Search implements Engine.
func (o *Observed) Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
	a, err := o.Engine.Search(observe.With(ctx, o.Listener), q)
	if err == nil {
		reportLacks(o.Lacked, q, a)
	}
	return a, err
}

// Read implements Engine.
func (o *Observed) Read(ctx context.Context, r retriever.ReadRequest) (*retriever.Reading, error) {
	return o.Engine.Read(observe.With(ctx, o.Listener), r)
}

// ReadAll implements Engine.
func (o *Observed) ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error) {
	return o.Engine.ReadAll(observe.With(ctx, o.Listener), r)
}

// reportLacks calls lacked, unless it is nil, with what the index lacked for a search that
// needed vectors. A stale file does not count.
func reportLacks(lacked func([]string), q retriever.Query, a *retriever.Answer) {
	if lacked != nil && q.Mode != retriever.Keyword {
		lacked(slices.DeleteFunc(slices.Clone(a.Degraded), func(what string) bool { return what == "stale" }))
	}
}

// outcome is how a call ended.
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

// traceOf returns the trace context of a request, from its _meta, as in revision
// 2026-07-28, or else from the headers of its HTTP request.
func traceOf(req *mcp.CallToolRequest) (parent, state string) {
	parent, _ = req.Params.Meta["traceparent"].(string)
	state, _ = req.Params.Meta["tracestate"].(string)
	if parent == "" && req.Extra != nil {
		return req.Extra.Header.Get("traceparent"), req.Extra.Header.Get("tracestate")
	}
	return parent, state
}
