package tools

import (
	"encoding/json"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"cairn/internal/task"
	"cairn/internal/text/secret"
	"cairn/internal/toolbox/usage"
)

// examples keeps the shortest arguments of the successful calls of each client and tool,
// with secrets masked. A client sees only its own.
type examples struct {
	mu    sync.Mutex
	masks *secret.Masks
	known *simplelru.LRU[[2]string, json.RawMessage] // by client and tool
}

// maxKnown bounds the examples in memory.
const maxKnown = 1024

func newExamples() *examples {
	known, _ := simplelru.NewLRU[[2]string, json.RawMessage](maxKnown, nil) // the size is positive
	masks, _ := secret.New()                                                // never fails without patterns
	return &examples{masks: masks, known: known}
}

// keep records the arguments of a successful call.
func (e *examples) keep(client, tool string, args json.RawMessage) {
	var object map[string]any
	if len(args) > usage.MaxExample || json.Unmarshal(args, &object) != nil || len(object) == 0 {
		return
	}
	short := e.masks.Arguments(object)
	e.mu.Lock()
	defer e.mu.Unlock()
	if old, ok := e.known.Get([2]string{client, tool}); !ok || len(short) < len(old) {
		e.known.Add([2]string{client, tool}, short)
	}
}

// add adds the example to a failure for invalid arguments.
func (e *examples) add(client, tool string, f *Failure) {
	if code, ok := f.Data["code"]; ok && code != task.InvalidParameter {
		return // such as a document that is not found
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if known, ok := e.known.Get([2]string{client, tool}); ok && f.Code == CodeInvalidParams {
		if f.Data == nil {
			f.Data = map[string]any{}
		}
		f.Data["example"] = known
	}
}
