package tools

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
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
