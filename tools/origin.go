package tools

import (
	"context"

	"cairn/internal/base/job"
	"cairn/internal/toolbox/usage"
	"cairn/tools/gateway"
)

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
func (r origin) wantsText(format string) bool { return r.text && format == "" }

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
