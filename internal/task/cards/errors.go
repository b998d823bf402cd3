package cards

import (
	"errors"
	"fmt"
	"io/fs"

	"cairn/internal/task/files"
)

// The error codes of the card tools. Negative codes are from JSON-RPC.
const (
	CodeNotFound      = 1001
	CodeCycle         = 1002
	CodeStale         = 1006
	CodeLock          = 1007
	CodeValidation    = 1010
	CodeInvalidParams = -32602
)

// Error reports an operation that failed without writing anything, in the form of answers.
type Error struct {
	Code    int
	Message string
	Data    map[string]any
	Err     error // the cause; nil for an invalid request
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

func invalid(format string, args ...any) error {
	return &Error{Code: CodeInvalidParams, Message: "Invalid params: " + fmt.Sprintf(format, args...)}
}

func dependencyNotFound(id, path string) error {
	return &Error{Code: CodeNotFound, Message: "Dependency Not Found", Data: map[string]any{
		"kind": "DependencyNotFound", "id": id, "path": path, "suggestion": "Create task " + id + " first, or leave it out of depends_on"}}
}

func circular(path []string) error {
	return &Error{Code: CodeCycle, Message: "Cycle Detected", Data: map[string]any{
		"kind": "CircularDependency", "cycle_path": path, "suggestion": "Remove dependency " + path[1] + " from " + path[0]}}
}

// fileError adds a code to an error of reading or writing a file.
func fileError(path string, err error) error {
	if err == nil {
		return nil
	}
	if lock, ok := errors.AsType[*files.LockError](err); ok {
		return &Error{Code: CodeLock, Message: "Lock Error", Err: err, Data: map[string]any{
			"lock_file": lock.Path, "holder_pid": lock.PID, "suggestion": "Another process is writing; try again"}}
	}
	if errors.Is(err, files.ErrChanged) {
		return &Error{Code: CodeStale, Message: "Stale Cache", Err: err, Data: map[string]any{
			"path": path, "recovery": "The file changed while it was being updated; read it again and repeat the update"}}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &Error{Code: CodeNotFound, Message: "Task Not Found", Err: err, Data: map[string]any{"path": path}}
	}
	return err
}
