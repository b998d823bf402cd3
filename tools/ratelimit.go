package tools

import (
	"maps"
	"sync"
	"time"
)

// rate limits the calls of one tool by one client to Burst in any window. Limit is the
// sustained rate in the documentation and in failures.
type rate struct {
	Limit, Burst int
}

// maxLogs is the number of logs at which the limiter drops expired ones, because clients
// may leave without notice over HTTP.
const maxLogs = 4096

// window is the sliding window of every rate.
const window = time.Minute

// limiter counts calls in a sliding window. It keeps a log of at most Burst times for each
// session and tool. It is safe for concurrent use.
type limiter struct {
	now func() time.Time

	mu    sync.Mutex
	calls map[limitKey][]time.Time
}

type limitKey struct{ session, tool string }

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, calls: map[limitKey][]time.Time{}}
}

// allow counts a call, or returns a failure if it exceeds the rate. It does not count such
// calls, so that retries do not extend the wait.
func (l *limiter) allow(session, tool string, r rate) *Failure {
	now := l.now()
	key := limitKey{session, tool}
	l.mu.Lock()
	defer l.mu.Unlock()
	log, known := l.calls[key]
	if !known && len(l.calls) >= maxLogs {
		maps.DeleteFunc(l.calls, func(_ limitKey, log []time.Time) bool {
			return now.Sub(log[len(log)-1]) >= window
		})
		if len(l.calls) >= maxLogs {
			clear(l.calls) // bound the memory, even at the cost of the limits
		}
	}
	for len(log) > 0 && now.Sub(log[0]) >= window {
		log = log[1:]
	}
	if len(log) < r.Burst {
		l.calls[key] = append(log, now)
		return nil
	}
	l.calls[key] = log
	wait := window - now.Sub(log[0])
	return &Failure{Code: CodeRateLimit, Message: "Rate Limit Exceeded", Data: map[string]any{
		"retry_after_seconds": int((wait + time.Second - 1) / time.Second),
		"limit":               r.Limit,
		"window_seconds":      int(window / time.Second),
		"current_count":       len(log),
	}}
}

// forget drops the logs of a session.
func (l *limiter) forget(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.calls {
		if key.session == session {
			delete(l.calls, key)
		}
	}
}
