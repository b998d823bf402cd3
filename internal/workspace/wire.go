package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"cairn/internal/store/docs"
	"cairn/retriever"
)

// protocol is the version of what the processes on one folder say to each
// other. A process of another version is told so, not misunderstood.
const protocol = "1"

// Paths of the owner's socket; all take POST with a JSON body.
const (
	opHello   = "/hello"
	opSearch  = "/search"
	opExplain = "/explain"
	opRead    = "/read"
	opReadAll = "/read_all"
	opIndex   = "/index"
	opStatus  = "/status"
	opWatch   = "/watch"
)

// hello is what an owner says about itself.
type hello struct {
	Protocol string `json:"protocol"`
	Model    string `json:"model"`
	Holder   Holder `json:"holder"`
	// Store is the address of the store that the owner keeps up to date, if any.
	Store string `json:"store,omitempty"`
}

// reply is one line of an answer. Only opIndex and opWatch have more than one:
// progress and events come ahead of the result.
type reply struct {
	Watch    *WatchEvent     `json:"watch,omitempty"`
	Progress *Progress       `json:"progress,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *wireError      `json:"error,omitempty"`
}

// wireError is an error on its way to another process. Types whose evidence
// callers look at keep their type.
type wireError struct {
	Kind    string          `json:"kind,omitempty"`
	Message string          `json:"message"`
	Detail  json.RawMessage `json:"detail,omitempty"`
}

// errorKinds lists the error types that survive the way, by name.
var errorKinds = map[string]errorKind{
	"lock":          kindOf[*LockError](),
	"rebuild":       kindOf[*RebuildError](),
	"invalid":       kindOf[*retriever.InvalidError](),
	"index_changed": kindOf[*retriever.IndexChangedError](),
	"not_found":     kindOf[*retriever.NotFoundError](),
	"token_limit":   kindOf[*retriever.TokenLimitError](),
	"stale":         kindOf[*retriever.StaleError](),
	"model":         kindOf[*docs.ModelError](),
}

type errorKind struct {
	as     func(error) (error, bool)
	decode func(json.RawMessage) (error, error)
}

// kindOf describes E, a pointer to a struct whose exported fields are the evidence.
func kindOf[E error]() errorKind {
	return errorKind{
		as: func(err error) (error, bool) { return errors.AsType[E](err) },
		decode: func(detail json.RawMessage) (error, error) {
			e := reflect.New(reflect.TypeFor[E]().Elem()).Interface()
			return e.(error), json.Unmarshal(detail, e)
		},
	}
}

// encodeError prepares err for the way; nil stays nil.
func encodeError(err error) *wireError {
	if err == nil {
		return nil
	}
	for kind, k := range errorKinds {
		e, ok := k.as(err)
		if !ok {
			continue
		}
		if detail, err := json.Marshal(e); err == nil {
			return &wireError{Kind: kind, Message: e.Error(), Detail: detail}
		}
	}
	switch {
	case errors.Is(err, errGone), errors.Is(err, context.Canceled):
		// The owner is closing, or it lost its own context; both mean: ask again.
		return &wireError{Kind: "gone", Message: err.Error()}
	case errors.Is(err, ErrNoIndex):
		return &wireError{Kind: "no_index", Message: err.Error()}
	}
	return &wireError{Message: err.Error()}
}

// decode is the inverse of encodeError.
func (e *wireError) decode() error {
	switch e.Kind {
	case "gone":
		return fmt.Errorf("%w: %s", errGone, e.Message)
	case "no_index":
		return ErrNoIndex
	}
	if k, ok := errorKinds[e.Kind]; ok {
		if typed, err := k.decode(e.Detail); err == nil {
			return typed
		}
	}
	return errors.New(e.Message)
}
