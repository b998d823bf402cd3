package tools

import (
	"context"
	"errors"

	"cairn/internal/task/doctask"
	"cairn/internal/task/taskgraph"
)

// typed is the call of a tool that takes an In and answers or fails in the way
// of most tools: {code, message, data}.
func typed[In, Out any](fn func(context.Context, In) (Out, error)) func(context.Context, call) (any, error) {
	return func(ctx context.Context, c call) (any, error) {
		var r In
		if err := decode(c.args, &r); err != nil {
			return nil, err
		}
		return fn(ctx, r)
	}
}

// document is the call of a tool on documents, which fails with {success:false,
// error, code, context}.
func document[In, Out any](fn func(context.Context, In) (Out, error)) func(context.Context, call) (any, error) {
	return func(ctx context.Context, c call) (any, error) {
		answer, err := typed(fn)(ctx, c)
		if err != nil {
			return nil, documentFailure(err)
		}
		return answer, nil
	}
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

// graphCall is the call of a tool on the task graph. Its answers say themselves
// whether they succeeded; only what went wrong inside, and arguments that
// cannot be read, are failures. outcome picks code, message and error.
func graphCall[In, Out any](fn func(context.Context, In) *Out, outcome func(*Out) (code, message, detail string)) func(context.Context, call) (any, error) {
	return func(ctx context.Context, c call) (any, error) {
		var r In
		if err := decode(c.args, &r); err != nil {
			f := FailureOf(err)
			f.body = map[string]any{"success": false, "message": f.Message}
			return nil, f
		}
		answer := fn(ctx, r)
		if code, message, detail := outcome(answer); code == taskgraph.CodeInternal {
			return nil, &Failure{Code: CodeInternal, Message: message, Data: map[string]any{"errorCode": code, "error": detail}, body: answer}
		}
		return answer, nil
	}
}
