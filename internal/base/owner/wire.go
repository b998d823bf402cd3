package owner

import (
	"context"
	"encoding/json"
	"errors"
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

// common are the kinds that every folder has.
var common = Kinds{"ended": Sentinel(ErrEnded), "lock": KindOf[*LockError]()}

// encode returns err as a client receives it; nil for nil.
func (kinds Kinds) encode(err error) *wireError {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) { // an owner that closes cancels its own operations
		err = errors.Join(err, ErrEnded)
	}
	for _, kinds := range []Kinds{common, kinds} {
		for name, k := range kinds {
			if e, ok := k.as(err); ok {
				if detail, bad := json.Marshal(e); bad == nil {
					return &wireError{Kind: name, Message: e.Error(), Detail: detail}
				}
			}
		}
	}
	return &wireError{Message: err.Error()}
}

// decode is the inverse of encode.
func (kinds Kinds) decode(e *wireError) error {
	for _, kinds := range []Kinds{common, kinds} {
		if k, ok := kinds[e.Kind]; ok {
			if typed, err := k.decode(e.Detail); err == nil {
				return typed
			}
		}
	}
	return errors.New(e.Message)
}
