package tools

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// openSessions limits the open sessions of each client of an HTTP server, and of all
// clients together. It is safe for concurrent use.
type openSessions struct {
	sdk       *mcp.Server
	each, all int // the limits
	now       func() time.Time

	mu   sync.Mutex
	byID map[string]*openSession
}

type openSession struct {
	client string
	busy   int // requests in progress
	used   time.Time
}

// idleSession is the time without requests after which a new session may replace a session.
const idleSession = 10 * time.Second

// begin makes room for a new session of a client. At the limit of the client it ends the
// longest idle session of the client, at the limit of all clients the longest idle one of
// all. It returns false if none is idle.
func (o *openSessions) begin(client string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	live := map[string]*mcp.ServerSession{}
	for s := range o.sdk.Sessions() {
		live[s.ID()] = s
	}
	own := 0
	var idle []string
	for id, s := range o.byID {
		if live[id] == nil {
			delete(o.byID, id)
			continue
		}
		if s.client == client {
			own++
		}
		if s.busy == 0 && o.now().Sub(s.used) >= idleSession {
			idle = append(idle, id)
		}
	}
	switch {
	case own >= o.each:
		idle = slices.DeleteFunc(idle, func(id string) bool { return o.byID[id].client != client })
	case len(live) < o.all:
		return true
	}
	if len(idle) == 0 {
		return false
	}
	end := slices.MinFunc(idle, func(a, b string) int { return o.byID[a].used.Compare(o.byID[b].used) })
	delete(o.byID, end)
	_ = live[end].Close()
	return true
}

// enter counts a request of a session until leave is called. The session may begin with
// the request.
func (o *openSessions) enter(w http.ResponseWriter, r *http.Request, client string) (leave func()) {
	id := r.Header.Get("Mcp-Session-Id")
	o.count(id, client, 1)
	return func() {
		if id != "" {
			o.count(id, client, -1)
		} else {
			o.count(w.Header().Get("Mcp-Session-Id"), client, 0)
		}
	}
}

// count adds busy to the requests in progress of a session. With busy 0 it registers a new
// session.
func (o *openSessions) count(id, client string, busy int) {
	if id == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.byID[id]
	if s == nil && busy == 0 {
		s = &openSession{client: client}
		o.byID[id] = s
	}
	if s != nil {
		s.busy += busy
		s.used = o.now()
	}
}

// hasMethod reports whether a message has the method.
func hasMethod(messages []envelope, method string) bool {
	return slices.ContainsFunc(messages, func(m envelope) bool { return m.Method == method })
}
