package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// protocol is the version of the messages between processes. A process of another
// version is refused.
const protocol = "2"

// ErrEnded says that the owner ended, or lost the folder, before it answered. Every
// operation may be asked again: Call does so.
var ErrEnded = errors.New("the process that owned the folder has ended")

// hello is what an owner says about itself.
type hello struct {
	Protocol string            `json:"protocol"`
	Identity map[string]string `json:"identity,omitempty"`
	Holder   Holder            `json:"holder"`
}

// reply is one line of an answer. Any number of lines with Ahead precede the one
// with Result or Error.
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

// Kinds are the error types that arrive at a client as the owner returned them, by
// a name of the caller's choice. Other errors arrive as their text.
type Kinds map[string]Kind

// Kind is one error type of Kinds: see KindOf and Sentinel.
type Kind struct {
	as     func(error) (error, bool)
	decode func(json.RawMessage) (error, error)
}

// KindOf is the kind of E, a pointer to a struct whose exported fields are the evidence.
func KindOf[E error]() Kind {
	return Kind{
		as: func(err error) (error, bool) { return errors.AsType[E](err) },
		decode: func(detail json.RawMessage) (error, error) {
			e := reflect.New(reflect.TypeFor[E]().Elem()).Interface()
			return e.(error), json.Unmarshal(detail, e)
		},
	}
}

// Sentinel is the kind of one error value.
func Sentinel(sentinel error) Kind {
	return Kind{
		as:     func(err error) (error, bool) { return sentinel, errors.Is(err, sentinel) },
		decode: func(json.RawMessage) (error, error) { return sentinel, nil },
	}
}

// ended is the kind of ErrEnded on the wire; lockKind that of a *LockError.
const (
	ended    = "ended"
	lockKind = "lock"
)

var lockErrors = KindOf[*LockError]()

// encode prepares err for a client; nil stays nil.
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
