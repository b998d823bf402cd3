package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/stage"
	"cairn/internal/task"
	"cairn/retriever"
)

// UsageError reports wrong arguments or flags. The program exits with code 2.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// BadUsage returns a UsageError.
func BadUsage(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Explain returns the text of an error for a person, and whether the error reports wrong
// arguments.
func Explain(err error) (text string, usage bool) {
	text = readable(err.Error(), err)
	_, wrong := errors.AsType[*UsageError](err)
	_, invalid := errors.AsType[*retriever.InvalidError](err)
	usage = wrong || invalid || slices.ContainsFunc([]stage.Code{stage.CodeParameter, stage.CodeTemplate, stage.CodePlan}, func(c stage.Code) bool { return errors.Is(err, stage.Is(c)) })
	if bad, ok := errors.AsType[*task.Error](err); ok {
		text = strings.Replace(text, bad.Error(), bad.Explain(), 1)
		usage = usage || bad.Number == task.CodeInvalidParams
	}
	return text, usage
}

// readable replaces the errors of strconv and time, which name functions of Go, by a
// description of the value that a flag accepts. It also removes the names of types and of
// operations such as openat.
func readable(text string, err error) string {
	if bad, ok := errors.AsType[*strconv.NumError](err); ok {
		want := map[string]string{"ParseFloat": "want a number", "ParseBool": "want true or false"}[bad.Func]
		want = cmp.Or(want, "want a whole number")
		if errors.Is(bad, strconv.ErrRange) {
			want = "that number is too large or too small"
		}
		return strings.Replace(text, bad.Error(), want, 1)
	}
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text = strings.Replace(text, bad.Error(), "unexpected "+bad.Value, 1)
	}
	text = relative.ReplaceAllString(text, "$1 ")
	return badDuration.ReplaceAllLiteralString(text, "want a time such as 30s or 5m")
}

// relative matches the operations in errors of os.Root.
var relative = regexp.MustCompile(`\b(l?stat|open|mkdir|unlink|readlink|rename)at `)

// badDuration matches the errors of time.ParseDuration.
var badDuration = regexp.MustCompile(`time: (invalid|missing unit in|unknown unit "[^"]*" in) duration "[^"]*"`)
