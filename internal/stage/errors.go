package stage

import "fmt"

// Code identifies the kind of an error.
type Code string

// The codes.
const (
	CodeParameter   Code = "INVALID_PARAMETER"
	CodeTemplate    Code = "UNKNOWN_TEMPLATE"
	CodePlan        Code = "INVALID_PLAN"
	CodeNotFound    Code = "TASK_NOT_FOUND"
	CodeExists      Code = "TASK_EXISTS"
	CodeTransition  Code = "INVALID_STATUS_TRANSITION"
	CodeWrongStage  Code = "WRONG_STAGE"
	CodeLate        Code = "LATE_RESULT" // of a run that has ended
	CodeReplayed    Code = "REPLAYED_EVENT"
	CodeClaimed     Code = "TASK_CLAIMED" // by another client
	CodeNotYours    Code = "STAGE_NOT_DELEGATED"
	CodeNotDue      Code = "NOT_DUE" // nothing has timed out
	CodeUnavailable Code = "STORE_UNAVAILABLE"
)

// Error reports an operation that failed without changing anything.
type Error struct {
	Code    Code
	Message string
	Err     error // the cause, for CodeUnavailable
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error with the same code and without a message.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// Is returns a target for errors.Is that matches errors with a code.
func Is(c Code) error { return &Error{Code: c} }

func refuse(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Message: fmt.Sprintf(format, args...)}
}

// NotFound returns the error of a store for an unknown id.
func NotFound(id string) error { return refuse(CodeNotFound, "no task %.80q", id) }

// Exists returns the error of a store for an id that is in use.
func Exists(id string) error { return refuse(CodeExists, "task %.80q exists already", id) }

// Unavailable returns the error of a store or queue whose server cannot be reached. server
// must not contain a password.
func Unavailable(server string, err error) error {
	return &Error{Code: CodeUnavailable, Message: server + " is not reachable; start it or check the address", Err: err}
}
