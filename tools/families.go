package tools

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"cairn/internal/stage"
	"cairn/internal/task/doctask"
	"cairn/internal/task/taskgraph"
)

// handler decodes a tool's arguments, does its work and reports failures in the
// way of the tool's family.
type handler struct {
	args    reflect.Type   // the struct that the arguments are decoded into
	answers []reflect.Type // the structs that the tool can answer with
	failed  *jsonschema.Schema
	call    func(ctx context.Context, args json.RawMessage) (any, error)
}

// newHandler returns the handler that decodes an In and calls fn. failed is the
// schema of the family's failures, and fail, when not nil, makes one of an error.
func newHandler[In, Out any](fn func(context.Context, In) (Out, error), failed *jsonschema.Schema, fail func(error) *Failure) handler {
	h := handler{args: reflect.TypeFor[In](), failed: failed, call: func(ctx context.Context, args json.RawMessage) (any, error) {
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
	return h
}

// failureSchema describes a failure by its fields, all of which but the last are
// required when optional is set.
func failureSchema(required []string, fields ...string) *jsonschema.Schema {
	types := map[string]string{"code": "string", "context": "object", "data": "object", "error": "string", "message": "string", "success": "boolean"}
	s := &jsonschema.Schema{PropertyOrder: fields, Required: required, Properties: map[string]*jsonschema.Schema{}}
	for _, name := range fields {
		s.Properties[name] = &jsonschema.Schema{Type: types[name]}
	}
	return s
}

// codeHandler is the handler of most tools: a failure is {code, message, data}.
func codeHandler[In, Out any](fn func(context.Context, In) (Out, error)) handler {
	failed := failureSchema([]string{"code", "message"}, "code", "message", "data")
	failed.Properties["code"].Type = "integer"
	return newHandler(fn, failed, nil)
}

// documentHandler is the handler of the tools on documents: a failure is
// {success: false, error, code, context}.
func documentHandler[In, Out any](fn func(context.Context, In) (Out, error)) handler {
	return newHandler(fn, failureSchema([]string{"success", "error", "code"}, "success", "error", "code", "context"), documentFailure)
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
	f.body = map[string]any{"success": false, "error": bad.Message, "code": bad.Code, "context": bad.Context}
	return f
}

// stageHandler is the handler of the tools on question tasks: a failure is
// {success: false, error, code}.
func stageHandler[In, Out any](fn func(context.Context, In) (Out, error)) handler {
	return newHandler(fn, failureSchema([]string{"success", "error", "code"}, "success", "error", "code"), stageFailure)
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
	f.body = map[string]any{"success": false, "error": f.Message, "code": code}
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
	return newHandler(func(ctx context.Context, in In) (Out, error) {
		answer := fn(ctx, in)
		if end := answer.Ending(); end.ErrorCode == taskgraph.CodeInternal {
			return answer, &Failure{Code: CodeInternal, Message: end.Message, Data: map[string]any{"errorCode": end.ErrorCode, "error": end.Error}, body: answer}
		}
		return answer, nil
	}, failureSchema([]string{"success", "message"}, "success", "message"), graphFailure)
}

func graphFailure(err error) *Failure {
	f := FailureOf(err)
	if f.body == nil {
		f.body = map[string]any{"success": false, "message": f.Message}
	}
	return f
}
