package tools

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"cairn/internal/task"
	"cairn/internal/text/secret"
	"cairn/internal/toolbox/usage"
)

// rate limits the calls of one tool by one client to Burst in any window. Limit is the
// sustained rate in the documentation and in failures.
type rate struct {
	Limit, Burst int
}

// maxLogs bounds the logs, because clients may leave without notice over HTTP.
const maxLogs = 4096

// window is the sliding window of every rate.
const window = time.Minute

// limiter counts calls in a sliding window. It keeps a log of at most Burst times for each of
// the last sessions and tools. It is safe for concurrent use.
type limiter struct {
	now func() time.Time

	mu    sync.Mutex
	calls *simplelru.LRU[[2]string, []time.Time] // by session and tool
}

func newLimiter(now func() time.Time) *limiter {
	calls, _ := simplelru.NewLRU[[2]string, []time.Time](maxLogs, nil) // the size is positive
	return &limiter{now: now, calls: calls}
}

// allow counts a call, or returns a failure if it exceeds the rate. It does not count such
// calls, so that retries do not extend the wait.
func (l *limiter) allow(session, tool string, r rate) *Failure {
	now := l.now()
	key := [2]string{session, tool}
	l.mu.Lock()
	defer l.mu.Unlock()
	log, _ := l.calls.Get(key)
	for len(log) > 0 && now.Sub(log[0]) >= window {
		log = log[1:]
	}
	if len(log) < r.Burst {
		l.calls.Add(key, append(log, now))
		return nil
	}
	wait := window - now.Sub(log[0])
	return &Failure{Code: CodeRateLimit, Message: "Rate Limit Exceeded", Data: map[string]any{
		"retry_after_seconds": int((wait + time.Second - 1) / time.Second),
		"limit":               r.Limit,
		"window_seconds":      int(window / time.Second),
		"current_count":       len(log),
	}}
}

// examples keeps the shortest arguments of the successful calls of each client and tool,
// and shows them with secrets masked. A client sees only its own.
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
	if len(args) > usage.MaxExample || bytes.IndexByte(args, '"') < 0 {
		return // too long, or no arguments
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if old, ok := e.known.Get([2]string{client, tool}); !ok || len(args) < len(old) {
		e.known.Add([2]string{client, tool}, bytes.Clone(args))
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
		var object map[string]any
		_ = json.Unmarshal(known, &object) // a tool has decoded it before
		f.Data["example"] = e.masks.Arguments(object)
	}
}
