package tools

import (
	"maps"
	"sync"
	"time"
)

// rate is how often one client may call one tool: Burst calls in any window. Limit
// is the sustained rate that the specification publishes and refusals name.
type rate struct {
	Limit, Burst int
}

// maxLogs is how many logs the limiter keeps before it drops expired ones: over
// HTTP a client does not say when it leaves.
const maxLogs = 4096

// window is the sliding window of every rate.
const window = time.Minute

// limiter counts calls in a sliding window, one log of times for each session
// and tool. The log never holds more than Burst times. Safe for concurrent use.
type limiter struct {
	now func() time.Time

	mu    sync.Mutex
	calls map[limitKey][]time.Time
}

type limitKey struct{ session, tool string }

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, calls: map[limitKey][]time.Time{}}
}

// allow counts a call, or returns the failure that refuses it. It does not count
// refused calls: a client that keeps trying is not locked out for longer.
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
			clear(l.calls) // bounded memory matters more than limits
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

// forget drops the counts of a session that has ended.
func (l *limiter) forget(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.calls {
		if key.session == session {
			delete(l.calls, key)
		}
	}
}
