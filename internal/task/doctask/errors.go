package doctask

import (
	"errors"
	"fmt"
	"io/fs"

	"cairn/internal/task"
	"cairn/internal/task/files"
	"cairn/internal/text/walk"
)

// evidence is the Data of an Error.
type evidence = map[string]any

func refuse(code string, ctx evidence, format string, args ...any) error {
	return &task.Error{Code: code, Message: fmt.Sprintf(format, args...), Data: ctx}
}

// fileError adds a code to an error of reading or writing a document.
func fileError(doc string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*task.Error](err); ok {
		return err
	}
	e := &task.Error{Code: task.OperationFailed, Err: err, Data: evidence{"document": doc}}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, walk.ErrSpecial), errors.Is(err, walk.ErrSymlink), errors.Is(err, walk.ErrPath):
		e.Code, e.Message, e.Data = task.DocumentNotFound, "Document not found: "+doc, evidence{"path": doc}
	case errors.Is(err, files.ErrChanged), errors.Is(err, walk.ErrChanged):
		e.Code, e.Message = task.PreconditionFailed, "Document changed since it was read: "+doc
	case errors.Is(err, walk.ErrSize):
		e.Code, e.Message = task.FileTooLarge, fmt.Sprintf("Document is larger than %d bytes: %s", walk.DefaultMaxSize, doc)
		e.Data["max_size"] = walk.DefaultMaxSize
	default:
		if lock, ok := errors.AsType[*files.LockError](err); ok {
			e.Code, e.Message = task.ResourceExhausted, lock.Error()
			e.Data["holder_pid"] = lock.PID
			return e
		}
		e.Message = err.Error()
	}
	return e
}
