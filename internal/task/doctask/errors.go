package doctask

import (
	"errors"
	"fmt"
	"io/fs"

	"cairn/internal/task/files"
	"cairn/internal/text/walk"
)

// Error reports an operation that failed without writing anything. In answers it is
// {success:false, error, code, context}.
type Error struct {
	Code    string
	Message string
	Context map[string]any
	Err     error // the cause; nil for an invalid request
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// The codes that operations on documents return.
const (
	DocumentNotFound      = "DOCUMENT_NOT_FOUND"
	SectionNotFound       = "SECTION_NOT_FOUND"
	InvalidAddress        = "INVALID_ADDRESS"
	InvalidParameter      = "INVALID_PARAMETER"
	MissingParameter      = "MISSING_PARAMETER"
	TooManyTasks          = "TOO_MANY_TASKS"
	TooManySections       = "TOO_MANY_SECTIONS"
	NoTasksSection        = "NO_TASKS_SECTION"
	TaskNotFound          = "TASK_NOT_FOUND"
	NotATask              = "NOT_A_TASK"
	EmptyTaskSlug         = "EMPTY_TASK_SLUG"
	MissingOperations     = "MISSING_OPERATIONS"
	EmptyOperations       = "EMPTY_OPERATIONS"
	BatchTooLarge         = "BATCH_TOO_LARGE"
	InvalidOperation      = "INVALID_OPERATION"
	DuplicateHeading      = "DUPLICATE_HEADING"
	InvalidSlug           = "INVALID_SLUG"
	InvalidTitle          = "INVALID_TITLE"
	InvalidSectionContent = "INVALID_SECTION_CONTENT"
	InvalidRegex          = "INVALID_REGEX"
	InvalidScope          = "INVALID_SCOPE"
	PreconditionFailed    = "PRECONDITION_FAILED"
	FileTooLarge          = "FILE_TOO_LARGE"
	ResourceExhausted     = "RESOURCE_EXHAUSTED"
	OperationFailed       = "OPERATION_FAILED"
)

// evidence is the Context of an Error.
type evidence = map[string]any

func refuse(code string, ctx evidence, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Context: ctx}
}

// fileError adds a code to an error of reading or writing a document.
func fileError(doc string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	e := &Error{Code: OperationFailed, Err: err, Context: evidence{"document": doc}}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, walk.ErrSpecial), errors.Is(err, walk.ErrSymlink), errors.Is(err, walk.ErrPath):
		e.Code, e.Message, e.Context = DocumentNotFound, "Document not found: "+doc, evidence{"path": doc}
	case errors.Is(err, files.ErrChanged), errors.Is(err, walk.ErrChanged):
		e.Code, e.Message = PreconditionFailed, "Document changed since it was read: "+doc
	case errors.Is(err, walk.ErrSize):
		e.Code, e.Message = FileTooLarge, fmt.Sprintf("Document is larger than %d bytes: %s", walk.DefaultMaxSize, doc)
		e.Context["max_size"] = walk.DefaultMaxSize
	default:
		if lock, ok := errors.AsType[*files.LockError](err); ok {
			e.Code, e.Message = ResourceExhausted, lock.Error()
			e.Context["holder_pid"] = lock.PID
			return e
		}
		e.Message = err.Error()
	}
	return e
}
