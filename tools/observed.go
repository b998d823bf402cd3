package tools

import (
	"context"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/observe"
	"cairn/retriever"
)

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

// traceOf returns the trace context of a request: from its _meta, as revision 2026-07-28
// defines, or else from its HTTP headers.
func traceOf(req *mcp.CallToolRequest) (parent, state string) {
	parent, _ = req.Params.Meta["traceparent"].(string)
	state, _ = req.Params.Meta["tracestate"].(string)
	if parent == "" && req.Extra != nil {
		return req.Extra.Header.Get("traceparent"), req.Extra.Header.Get("tracestate")
	}
	return parent, state
}
