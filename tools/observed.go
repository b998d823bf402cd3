package tools

import (
	"context"
	"encoding/json"
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
