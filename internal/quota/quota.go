// Package quota bounds what each client of a server, and all of them, have in use.
package quota

import "sync"

// Quota counts units that clients hold. It is safe for concurrent use.
type Quota struct {
	each, all int

	mu   sync.Mutex
	used map[string]int
	sum  int
}

// New returns a Quota of that many units for each client, and for all of them.
func New(each, all int) *Quota { return &Quota{each: each, all: all, used: map[string]int{}} }

// Take takes n units for a client. It returns false, and takes none, if the client or
// all of them would have too many.
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

// Return gives n units of a client back.
func (q *Quota) Return(client string, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sum -= n
	if q.used[client] -= n; q.used[client] == 0 {
		delete(q.used, client)
	}
}
