package tools

import (
	"context"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/observe"
	"cairn/retriever"
)

// Observed is an Engine whose stages are told to a listener, whichever way its
// work was asked for. It is for whoever answers from the engine beside the
// tools as well, such as pages.
type Observed struct {
	Engine
	// Listener is told of stages.
	Listener observe.Listener
	// Lacked, when not nil, is told after each search that wanted vectors what it
	// lacked, none included.
	Lacked func([]string)
}

// Search implements Engine.
func (o *Observed) Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
	a, err := o.Engine.Search(observe.With(ctx, o.Listener), q)
	if err == nil && o.Lacked != nil && q.Mode != retriever.Keyword {
		// What is stale is a matter of the files found, not of the index.
		o.Lacked(slices.DeleteFunc(slices.Clone(a.Degraded), func(what string) bool { return what == "stale" }))
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

// outcome is what became of a call.
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

// traceOf is the trace context of a request: that of its _meta, as revision
// 2026-07-28 has it, else that of the HTTP request it came with.
func traceOf(req *mcp.CallToolRequest) (parent, state string) {
	parent, _ = req.Params.Meta["traceparent"].(string)
	state, _ = req.Params.Meta["tracestate"].(string)
	if parent == "" && req.Extra != nil {
		return req.Extra.Header.Get("traceparent"), req.Extra.Header.Get("tracestate")
	}
	return parent, state
}
