package tools

import "context"

// text is an answer that is not structured.
type text string

type textKey struct{}

// withText returns the context of a call whose answer may be text.
func withText(ctx context.Context) context.Context { return context.WithValue(ctx, textKey{}, true) }

// wantsText reports whether a call answers with text: those of tools/call do, unless the
// format is json.
func wantsText(ctx context.Context, format string) bool {
	return ctx.Value(textKey{}) != nil && format == ""
}

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
