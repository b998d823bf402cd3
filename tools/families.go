package tools

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"cairn/internal/stage"
	"cairn/internal/task/doctask"
	"cairn/internal/task/taskgraph"
)

// handler decodes a tool's arguments, does its work and reports failures in the
// way of the tool's family.
type handler struct {
	args    reflect.Type   // the struct that the arguments are decoded into
	answers []reflect.Type // the structs that the tool can answer with, a failure last
	call    func(ctx context.Context, args json.RawMessage) (any, error)
}

// newHandler returns the handler that decodes an In and calls fn. Failed is the
// format of the family's failures, and fail, when not nil, makes one of an error.
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

// codeHandler is the handler of most tools, which fail with a Failure.
func codeHandler[In, Out any](fn func(context.Context, In) (Out, error)) handler {
	return newHandler[Failure](fn, nil)
}

// documentHandler is the handler of the tools on documents.
func documentHandler[In, Out any](fn func(context.Context, In) (Out, error)) handler {
	return newHandler[documentFailed](fn, documentFailure)
}

// documentFailed is how the tools on documents fail.
type documentFailed struct {
	Code    string         `json:"code"`
	Context map[string]any `json:"context"`
	Error   string         `json:"error"`
	Success bool           `json:"success"` // false
}

func documentFailure(err error) *Failure {
	bad, ok := errors.AsType[*doctask.Error](err)
	if !ok {
		f := FailureOf(err)
		bad = &doctask.Error{Code: doctask.OperationFailed, Message: f.Message, Context: f.Data}
		if f.Code == CodeInvalidParams {
			bad.Code = doctask.InvalidParameter
		}
	}
	if bad.Context == nil {
		bad.Context = map[string]any{}
	}
	f := &Failure{Code: CodeInvalidParams, Message: bad.Message, Data: map[string]any{"code": bad.Code, "context": bad.Context}}
	if bad.Code == doctask.OperationFailed || bad.Code == doctask.ResourceExhausted {
		f.Code = CodeInternal
	}
	f.body = documentFailed{Error: bad.Message, Code: bad.Code, Context: bad.Context}
	return f
}

// stageHandler is the handler of the tools on question tasks.
func stageHandler[In, Out any](fn func(context.Context, In) (Out, error)) handler {
	return newHandler[stageFailed](fn, stageFailure)
}

// stageFailed is how the tools on question tasks fail.
type stageFailed struct {
	Code    string `json:"code"`
	Error   string `json:"error"`
	Success bool   `json:"success"` // false
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

// graphAnswer is an answer about the task graph. It says itself whether the
// request succeeded.
type graphAnswer interface {
	Ending() *taskgraph.Outcome
}

// graphHandler is the handler of the tools on the task graph. Only what went
// wrong inside and arguments that cannot be read are failures.
func graphHandler[In any, Out graphAnswer](fn func(context.Context, In) Out) handler {
	return newHandler[graphFailed](func(ctx context.Context, in In) (Out, error) {
		answer := fn(ctx, in)
		if end := answer.Ending(); end.ErrorCode == taskgraph.CodeInternal {
			return answer, &Failure{Code: CodeInternal, Message: end.Message, Data: map[string]any{"errorCode": end.ErrorCode, "error": end.Error}, body: answer}
		}
		return answer, nil
	}, graphFailure)
}

// graphFailed is how the tools on the task graph fail when they have no answer.
type graphFailed struct {
	Message string `json:"message"`
	Success bool   `json:"success"` // false
}

func graphFailure(err error) *Failure {
	f := FailureOf(err)
	if f.body == nil {
		f.body = graphFailed{Message: f.Message}
	}
	return f
}
