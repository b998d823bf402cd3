// Package quota limits the units that each client of a server, and all clients together,
// have in use.
package quota

import (
	"net"
	"sync"
)

// Quota counts the units in use. It is safe for concurrent use.
type Quota struct {
	each, all int

	mu   sync.Mutex
	used map[string]int
	sum  int
}

// New returns a Quota with limits for each client and for all clients together.
func New(each, all int) *Quota { return &Quota{each: each, all: all, used: map[string]int{}} }

// Take takes n units for a client. It returns false, and takes none, if this would exceed a
// limit.
func (q *Quota) Take(client string, n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sum+n > q.all || q.used[client]+n > q.each {
		return false
	}
	q.used[client] += n
	q.sum += n
	return true
}

// Return returns n units of a client.
func (q *Quota) Return(client string, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sum -= n
	if q.used[client] -= n; q.used[client] == 0 {
		delete(q.used, client)
	}
}

// Client returns the name of the sender of an HTTP request: its token, or the host of its
// address if tokenID is "".
func Client(tokenID, remoteAddr string) string {
	if tokenID != "" {
		return "token " + tokenID
	}
	host, _, err := net.SplitHostPort(remoteAddr)
	if err != nil {
		host = remoteAddr
	}
	return "address " + host
}
