package task

import (
	"fmt"
	"strings"
)

// Error reports an operation that failed without writing anything.
type Error struct {
	// Number is the code of the failure in answers about cards, 0 for documents.
	Number int
	// Code is the code of the failure in answers about documents, "" for cards.
	Code    string
	Message string
	Data    map[string]any // the context of the failure in answers
	Err     error          // the cause; nil for an invalid request
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// Explain returns the message for people: with what the context says about the cause and about
// what to do.
func (e *Error) Explain() string {
	text := strings.TrimPrefix(e.Message, "Invalid params: ")
	if cycle, ok := e.Data["cycle_path"].([]string); ok {
		text += ": " + strings.Join(cycle, " → ")
	}
	for _, add := range [][2]string{{": ", "path"}, {": ", "id"}, {": ", "detail"}, {". ", "suggestion"}, {". ", "recovery"}} {
		if more, ok := e.Data[add[1]].(string); ok && !strings.Contains(text, more) {
			text += add[0] + more
		}
	}
	return text
}

// Invalid returns the Error of an operation on cards or notes for an invalid argument.
func Invalid(format string, args ...any) error {
	return &Error{Number: CodeInvalidParams, Message: "Invalid params: " + fmt.Sprintf(format, args...)}
}

// The numbers of failures. Negative numbers are from JSON-RPC.
const (
	CodeNotFound      = 1001
	CodeCycle         = 1002
	CodeStale         = 1006
	CodeLock          = 1007
	CodeValidation    = 1010
	CodeInvalidParams = -32602
)

// The codes of failures of operations on documents.
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
