package tools

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/owner"
	"cairn/internal/folder/index"
	"cairn/internal/folder/mirror"
	"cairn/internal/task"
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
		return &Failure{Code: CodeUnavailable, Message: err.Error(), Data: map[string]any{"suggestion": "Try again in a few seconds: the store of this workspace does not answer."}}
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
		data, err := marshal(f.Data)
		if err != nil {
			return &jsonrpc.Error{Code: CodeInternal, Message: err.Error()} // unreachable: the values are plain
		}
		e.Data = data
	}
	return e
}
