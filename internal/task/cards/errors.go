package cards

import (
	"errors"
	"io/fs"

	"cairn/internal/task"
	"cairn/internal/task/files"
)

func notACard(path, detail, suggestion string) error {
	return &task.Error{Number: task.CodeValidation, Message: "Validation Error", Data: map[string]any{"path": path, "detail": detail, "suggestion": suggestion}}
}

func circular(path []string) error {
	return &task.Error{Number: task.CodeCycle, Message: "Cycle Detected", Data: map[string]any{
		"kind": "CircularDependency", "cycle_path": path, "suggestion": "Remove dependency " + path[1] + " from " + path[0]}}
}

// FileError adds a code to an error of reading or writing a file.
func FileError(path string, err error) error {
	if err == nil {
		return nil
	}
	if lock, ok := errors.AsType[*files.LockError](err); ok {
		return &task.Error{Number: task.CodeLock, Message: "Lock Error", Err: err, Data: map[string]any{
			"lock_file": lock.Path, "holder_pid": lock.PID, "suggestion": "Another process is writing; try again"}}
	}
	if errors.Is(err, files.ErrChanged) {
		return &task.Error{Number: task.CodeStale, Message: "Stale Cache", Err: err, Data: map[string]any{
			"path": path, "recovery": "The file changed while it was being updated; read it again and repeat the update"}}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &task.Error{Number: task.CodeNotFound, Message: "Task Not Found", Err: err, Data: map[string]any{"path": path}}
	}
	return err
}
