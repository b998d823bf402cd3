package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// protocol is the version of the messages between processes. A client refuses an owner
// of another version.
const protocol = "3"

// ErrEnded is returned if the owner ended, or lost the folder, before it answered. The
// caller may repeat the operation; Call does.
var ErrEnded = errors.New("the process that owned the folder has ended")

// hello is an owner's description of itself.
type hello struct {
	Protocol string            `json:"protocol"`
	Identity map[string]string `json:"identity,omitempty"`
	Holder   Holder            `json:"holder"`
}

// reply is one line of an answer. Any number of lines with Ahead precede the line with
// Result or Error.
type reply struct {
	Ahead  json.RawMessage `json:"ahead,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *wireError      `json:"error,omitempty"`
}

// wireError is an error in a reply.
type wireError struct {
	Kind    string          `json:"kind,omitempty"`
	Message string          `json:"message"`
	Detail  json.RawMessage `json:"detail,omitempty"`
}

// Kinds maps names to the error types that clients receive with their type and fields.
// Of other errors clients receive the text.
type Kinds map[string]Kind

// Kind is one error type of Kinds, made by KindOf or Sentinel.
type Kind struct {
	as     func(error) (error, bool)
	decode func(json.RawMessage) (error, error)
}

// KindOf returns the Kind of E, a pointer to a struct with exported fields.
func KindOf[E error]() Kind {
	return Kind{
		as: func(err error) (error, bool) { return errors.AsType[E](err) },
		decode: func(detail json.RawMessage) (error, error) {
			e := reflect.New(reflect.TypeFor[E]().Elem()).Interface()
			return e.(error), json.Unmarshal(detail, e)
		},
	}
}

// Sentinel returns the Kind of one error value.
func Sentinel(sentinel error) Kind {
	return Kind{
		as:     func(err error) (error, bool) { return sentinel, errors.Is(err, sentinel) },
		decode: func(json.RawMessage) (error, error) { return sentinel, nil },
	}
}

// The kinds on the wire of ErrEnded and of a *LockError.
const (
	ended    = "ended"
	lockKind = "lock"
)

var lockErrors = KindOf[*LockError]()

// encode returns err as a client receives it; nil for nil.
func (kinds Kinds) encode(err error) *wireError {
	if err == nil {
		return nil
	}
	// An owner that closes cancels its own operations.
	if errors.Is(err, ErrEnded) || errors.Is(err, context.Canceled) {
		return &wireError{Kind: ended, Message: err.Error()}
	}
	if e, ok := lockErrors.as(err); ok {
		return typed(lockKind, e)
	}
	for name, k := range kinds {
		if e, ok := k.as(err); ok {
			return typed(name, e)
		}
	}
	return &wireError{Message: err.Error()}
}

func typed(kind string, err error) *wireError {
	detail, marshalErr := json.Marshal(err)
	if marshalErr != nil {
		return &wireError{Message: err.Error()}
	}
	return &wireError{Kind: kind, Message: err.Error(), Detail: detail}
}

// decode is the inverse of encode.
func (kinds Kinds) decode(e *wireError) error {
	if e.Kind == ended {
		return fmt.Errorf("%w: %s", ErrEnded, e.Message)
	}
	k, ok := kinds[e.Kind]
	if e.Kind == lockKind {
		k, ok = lockErrors, true
	}
	if ok {
		if typed, err := k.decode(e.Detail); err == nil {
			return typed
		}
	}
	return errors.New(e.Message)
}
