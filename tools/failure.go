package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
	"cairn/internal/folder/mirror"
	"cairn/internal/stage"
	"cairn/internal/task"
	"cairn/internal/task/taskgraph"
)

// The codes of failures. Negative codes are those of JSON-RPC.
const (
	CodeNotFound      = task.CodeNotFound
	CodeCycle         = task.CodeCycle
	CodeTokenLimit    = 1003
	CodeStale         = task.CodeStale
	CodeLock          = task.CodeLock
	CodeRateLimit     = 429
	CodeUnavailable   = 503
	CodeInvalidParams = jsonrpc.CodeInvalidParams
	CodeInternal      = jsonrpc.CodeInternalError
)

// Failure is the result of a failed call.
type Failure struct {
	Code    int            `json:"code"`
	Message string         `json:"message"`
	Data    map[string]any `json:"data,omitempty"`

	// body, unless it is nil, replaces the fields above in the result of tools/call. Some
	// families of tools have their own format of failures.
	body any

	// input requests what the call needs from the client's user; the client then repeats it.
	input mcp.InputRequestMap
	asked string // the state of the request
}

// MarshalJSON writes the failure in the format of its family.
func (f *Failure) MarshalJSON() ([]byte, error) {
	if f.body != nil {
		return marshal(f.body)
	}
	type fields Failure
	return marshal((*fields)(f))
}

func (f *Failure) Error() string { return fmt.Sprintf("%s (code %d)", f.Message, f.Code) }

// invalid returns the failure for an invalid argument.
func invalid(format string, args ...any) *Failure {
	return &Failure{Code: CodeInvalidParams, Message: "Invalid params: " + fmt.Sprintf(format, args...)}
}

// FailureOf returns the failure for an error of an operation or of a tool.
func FailureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if bad, ok := errors.AsType[*task.Error](err); ok {
		return &Failure{Code: bad.Number, Message: bad.Message, Data: bad.Data}
	}
	if lock, ok := errors.AsType[*owner.LockError](err); ok {
		data := map[string]any{"lock_file": lock.LockFile, "holder_pid": lock.Holder.PID, "suggestion": lock.Suggestion(), "detail": lock.Error()}
		if !lock.Holder.StartedAt.IsZero() {
			data["holder_started_at"] = lock.Holder.StartedAt.UTC().Format("2006-01-02T15:04:05Z")
		}
		return &Failure{Code: CodeLock, Message: "Lock Error", Data: data}
	}
	if _, ok := errors.AsType[*index.RebuildError](err); ok {
		return &Failure{Code: CodeInternal, Message: err.Error(), Data: map[string]any{"suggestion": "Call the index tool with rebuild=true."}}
	}
	if f := readFailure(err); f != nil {
		return f
	}
	if mirror.Unavailable(err) {
		return &Failure{Code: CodeUnavailable, Message: err.Error(), Data: map[string]any{"suggestion": "Try again in a few seconds: the store of this workspace cannot answer now."}}
	}
	if errors.Is(err, context.Canceled) {
		return &Failure{Code: CodeInternal, Message: "cancelled"}
	}
	return &Failure{Code: CodeInternal, Message: err.Error()}
}

// wire returns the failure as a JSON-RPC error.
func (f *Failure) wire() *jsonrpc.Error {
	e := &jsonrpc.Error{Code: int64(f.Code), Message: f.Message}
	if len(f.Data) > 0 {
		e.Data, _ = marshal(f.Data) // never fails: the values are plain
	}
	return e
}

// handler decodes the arguments of a tool, runs it and returns failures in the format of
// its family.
type handler struct {
	args    reflect.Type   // the struct of the arguments
	answers []reflect.Type // the structs of the possible answers, the last of a failure
	call    func(ctx context.Context, args json.RawMessage) (any, error)
}

// newHandler returns a handler that decodes an In and calls fn. Failed is the struct of
// the family's failures. fail, unless it is nil, converts an error to a failure.
func newHandler[Failed, In, Out any](fn func(context.Context, In) (Out, error), fail func(error) *Failure) handler {
	h := handler{args: reflect.TypeFor[In](), call: func(ctx context.Context, args json.RawMessage) (any, error) {
		var in In
		err := decode(args, &in)
		if err == nil {
			var out Out
			if out, err = fn(ctx, in); err == nil {
				return out, nil
			}
		}
		if fail != nil {
			err = fail(err)
		}
		return nil, err
	}}
	if out := reflect.TypeFor[Out](); out.Kind() == reflect.Pointer {
		h.answers = []reflect.Type{out.Elem()}
	}
	h.answers = append(h.answers, reflect.TypeFor[Failed]())
	return h
}

// codeHandler returns the handler of a tool that fails with a Failure, as most do. answers are
// the structs of the answers of a fn that returns any.
func codeHandler[In, Out any](fn func(context.Context, In) (Out, error), answers ...reflect.Type) handler {
	h := newHandler[Failure](fn, nil)
	h.answers = append(answers, h.answers...)
	return h
}

// documentHandler returns the handler of a tool on documents.
func documentHandler[In, Out any](fn func(context.Context, In) (Out, error)) handler {
	return newHandler[documentFailed](fn, documentFailure)
}

// documentFailed is a failure of a tool on documents.
type documentFailed struct {
	Code    string         `json:"code"`
	Context map[string]any `json:"context"`
	Error   string         `json:"error"`
	Success bool           `json:"success"` // always false
}

func documentFailure(err error) *Failure {
	f := FailureOf(err)
	body := documentFailed{Error: f.Message, Code: task.OperationFailed, Context: f.Data}
	if bad, ok := errors.AsType[*task.Error](err); ok {
		body.Code = bad.Code
	} else if f.Code == CodeInvalidParams {
		body.Code = task.InvalidParameter
	}
	if body.Context == nil {
		body.Context = map[string]any{}
	}
	f = &Failure{Code: CodeInvalidParams, Message: f.Message, Data: map[string]any{"code": body.Code, "context": body.Context}, body: body}
	if body.Code == task.OperationFailed || body.Code == task.ResourceExhausted {
		f.Code = CodeInternal
	}
	return f
}

// stageHandler returns the handler of a tool on question tasks.
func stageHandler[In, Out any](fn func(context.Context, In) (Out, error)) handler {
	return newHandler[stageFailed](fn, stageFailure)
}

// stageFailed is a failure of a tool on question tasks.
type stageFailed struct {
	Code    string `json:"code"`
	Error   string `json:"error"`
	Success bool   `json:"success"` // always false
}

func stageFailure(err error) *Failure {
	f, code := FailureOf(err), "INTERNAL_ERROR"
	if f.Code == CodeInvalidParams {
		code = string(stage.CodeParameter)
	}
	if e, ok := errors.AsType[*stage.Error](err); ok {
		f = &Failure{Code: CodeInvalidParams, Message: e.Error()}
		switch code = string(e.Code); e.Code {
		case stage.CodeNotFound:
			f.Code = CodeNotFound
		case stage.CodeUnavailable:
			f.Code = CodeInternal
		}
	}
	f.Data = map[string]any{"code": code}
	f.body = stageFailed{Error: f.Message, Code: code}
	return f
}

// graphAnswer is an answer about the task graph. It contains the outcome of the request.
type graphAnswer interface {
	Ending() *taskgraph.Outcome
}

// graphHandler returns the handler of a tool on the task graph. Internal errors and
// invalid arguments are failures; the answer reports any other error.
func graphHandler[In any, Out graphAnswer](fn func(context.Context, In) Out) handler {
	return newHandler[graphFailed](func(ctx context.Context, in In) (Out, error) {
		answer := fn(ctx, in)
		if end := answer.Ending(); end.ErrorCode == taskgraph.CodeInternal {
			return answer, &Failure{Code: CodeInternal, Message: end.Message, Data: map[string]any{"errorCode": end.ErrorCode, "error": end.Error}, body: answer}
		}
		return answer, nil
	}, graphFailure)
}

// graphFailed is a failure of a tool on the task graph without an answer.
type graphFailed struct {
	Message string `json:"message"`
	Success bool   `json:"success"` // always false
}

func graphFailure(err error) *Failure {
	f := FailureOf(err)
	if f.body == nil {
		f.body = graphFailed{Message: f.Message}
	}
	return f
}
