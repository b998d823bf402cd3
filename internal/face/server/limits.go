package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"cairn/internal/base/quota"
	"cairn/tools"
)

const (
	// clientShare is the divisor that gives the share of one client in all requests, and
	// in all streams. See quota.Client for what a client is.
	clientShare = 4
	// queueLength is how many requests wait for each that may be in progress.
	queueLength = 4
	// maxStreams bounds the streams of all clients. They have their own limit, because
	// they stay open for hours.
	maxStreams = 256
	// maxRates bounds the number of limiters in memory.
	maxRates = 4096
	// callRate bounds the calls of one client in a second, beyond a burst.
	callRate              rate.Limit = 20
	apiBurst, createBurst            = 200, 300
)

// limits are the limits of a server's clients.
type limits struct {
	requests, streams *quota.Quota
	queue             *quota.Quota // requests that wait
	wait              time.Duration
	unlimited         bool                              // disables the rate limits
	rates             *lru.Cache[string, *rate.Limiter] // by limit and client
}

// isStream reports whether the answer to a request is a stream of events. It trusts the
// header Mcp-Method, because the SDK refuses a POST with another method in its body.
func isStream(r *http.Request) bool {
	mcp := strings.HasSuffix(r.URL.Path, "/mcp")
	if r.Method == http.MethodGet {
		return mcp || strings.HasSuffix(r.URL.Path, "/progress")
	}
	return mcp && r.Header.Get("Mcp-Method") == "subscriptions/listen"
}

// enter counts a request in progress until leave is called. If there are too many, the
// request waits. If too many wait, or it waits too long, enter answers 503.
func (l *limits) enter(w http.ResponseWriter, r *http.Request, client string) (leave func(), ok bool) {
	q, what := l.requests, "requests are in progress"
	if isStream(r) {
		q, what = l.streams, "streams are open"
	}
	taken := q.Take(client, 1)
	if !taken && q == l.requests && l.queue.Take(client, 1) {
		ctx, cancel := context.WithTimeout(r.Context(), l.wait)
		taken = q.Wait(ctx, client, 1)
		cancel()
		l.queue.Return(client, 1)
	}
	if !taken {
		w.Header().Set("Retry-After", "1")
		refuse(w, r, http.StatusServiceUnavailable, &tools.Failure{Code: tools.CodeRateLimit, Message: "too many " + what + " already, of this client or of all"})
		return nil, false
	}
	return func() { q.Return(client, 1) }, true
}

// allow counts a call of a path with a rate limit, or answers 429.
func (l *limits) allow(w http.ResponseWriter, r *http.Request, client string) bool {
	var name string
	var burst int
	switch {
	case l.unlimited:
		return true
	case strings.Contains(r.URL.Path, "/api/"):
		name, burst = "api", apiBurst
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/tasks/create"):
		name, burst = "create", createBurst
	default:
		return true
	}
	limiter := rate.NewLimiter(callRate, burst)
	if known, ok, _ := l.rates.PeekOrAdd(name+" "+client, limiter); ok {
		limiter = known
	}
	if limiter.Allow() {
		return true
	}
	w.Header().Set("Retry-After", "1")
	refuse(w, r, http.StatusTooManyRequests, &tools.Failure{Code: tools.CodeRateLimit, Message: fmt.Sprintf("Rate Limit Exceeded: %v calls a second", callRate)})
	return false
}
