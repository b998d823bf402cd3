// Package quota limits the units that each client of a server, and all clients together,
// have in use.
package quota

import (
	"context"
	"net"
	"slices"
	"sync"
)

// Quota counts the units in use. It is safe for concurrent use.
type Quota struct {
	each, all int

	mu   sync.Mutex
	used map[string]int
	sum  int
	// waiting are the calls of Wait in the order of their arrival.
	waiting []*waiter
}

type waiter struct {
	client string
	n      int
	taken  chan struct{} // closed when the units are taken
}

// New returns a Quota with limits for each client and for all clients together.
func New(each, all int) *Quota { return &Quota{each: each, all: all, used: map[string]int{}} }

// Take takes n units for a client. It returns false, and takes none, if this would exceed a
// limit.
func (q *Quota) Take(client string, n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.take(client, n)
}

// take is Take for a caller that holds q.mu.
func (q *Quota) take(client string, n int) bool {
	if q.sum+n > q.all || q.used[client]+n > q.each {
		return false
	}
	q.used[client] += n
	q.sum += n
	return true
}

// Wait is Take, but waits for units that are returned, until ctx ends. Calls that fit are
// served in the order of their arrival, so that a client at its limit delays no other.
func (q *Quota) Wait(ctx context.Context, client string, n int) bool {
	w := &waiter{client, n, make(chan struct{})}
	q.mu.Lock()
	if q.take(client, n) {
		q.mu.Unlock()
		return true
	}
	q.waiting = append(q.waiting, w)
	q.mu.Unlock()
	select {
	case <-w.taken:
		return true
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.waiting, w)
	if at < 0 {
		return true // taken when ctx ended
	}
	q.waiting = slices.Delete(q.waiting, at, at+1)
	return false
}

// Return returns n units of a client.
func (q *Quota) Return(client string, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sum -= n
	if q.used[client] -= n; q.used[client] == 0 {
		delete(q.used, client)
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(w *waiter) bool {
		ok := q.take(w.client, w.n)
		if ok {
			close(w.taken)
		}
		return ok
	})
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
