package server

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"cairn/internal/quota"
	"cairn/tools"
)

const (
	// clientShare is the part of all requests, and of all streams, that one client may
	// have in progress: a token, or without one an address.
	clientShare = 4
	// maxStreams bounds the streams of all clients, which have their own limit: they stay
	// open for hours.
	maxStreams = 256
	// maxRates bounds the clients whose rates are kept.
	maxRates = 4096
)

// rates of the paths that are limited, in calls a second and at once.
var (
	apiRate    = limit{20, 200}
	createRate = limit{20, 300}
)

type limit struct {
	perSecond rate.Limit
	burst     int
}

// limits are the limits of a server's clients.
type limits struct {
	requests, streams *quota.Quota
	unlimited         bool // without rates

	mu    sync.Mutex
	rates map[string]*rate.Limiter // by path and client
}

func newLimits(o *Options) *limits {
	return &limits{
		requests:  quota.New(max(1, o.MaxRequests/clientShare), o.MaxRequests),
		streams:   quota.New(maxStreams/clientShare, maxStreams),
		unlimited: o.NoRateLimit, rates: map[string]*rate.Limiter{},
	}
}

// clientOf names the client of a request for the limits.
func clientOf(r *http.Request, c caller) string {
	if c.known {
		return "token " + c.token.ID
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "address " + host
}

// isStream reports whether the answer to a request is a stream of events. A POST that
// does not hold the method of its header is refused.
func isStream(r *http.Request) bool {
	mcp := strings.HasSuffix(r.URL.Path, "/mcp")
	if r.Method == http.MethodGet {
		return mcp || strings.HasSuffix(r.URL.Path, "/progress")
	}
	return mcp && r.Header.Get("Mcp-Method") == "subscriptions/listen"
}

// enter counts a request in progress, or answers that there are too many. leave ends
// it.
func (l *limits) enter(w http.ResponseWriter, r *http.Request, client string) (leave func(), ok bool) {
	q, what := l.requests, "requests are in progress"
	if isStream(r) {
		q, what = l.streams, "streams are open"
	}
	if !q.Take(client, 1) {
		w.Header().Set("Retry-After", "1")
		refuse(w, r, http.StatusServiceUnavailable, &tools.Failure{Code: tools.CodeRateLimit, Message: "too many " + what + " already, of this client or of all"})
		return nil, false
	}
	return func() { q.Return(client, 1) }, true
}

// allow counts a call of a path that is limited in rate, or answers 429.
func (l *limits) allow(w http.ResponseWriter, r *http.Request, client string) bool {
	var name string
	var of limit
	switch {
	case l.unlimited:
		return true
	case strings.Contains(r.URL.Path, "/api/"):
		name, of = "api", apiRate
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/tasks/create"):
		name, of = "create", createRate
	default:
		return true
	}
	l.mu.Lock()
	if len(l.rates) >= maxRates {
		clear(l.rates) // bounded memory matters more than limits
	}
	key := name + " " + client
	limiter := l.rates[key]
	if limiter == nil {
		limiter = rate.NewLimiter(of.perSecond, of.burst)
		l.rates[key] = limiter
	}
	l.mu.Unlock()
	if limiter.Allow() {
		return true
	}
	w.Header().Set("Retry-After", "1")
	refuse(w, r, http.StatusTooManyRequests, &tools.Failure{Code: tools.CodeRateLimit, Message: fmt.Sprintf("Rate Limit Exceeded: %v calls a second", of.perSecond)})
	return false
}
