package qdrant

import (
	"sync"
	"time"
)

// gateLimit is how long searches wait for a batch of their own process.
const gateLimit = 250 * time.Millisecond

// gate keeps the searches of this process from seeing half of a batch that it
// writes: the engine applies one point after the other. A batch that takes longer
// than gateLimit, because the server is slow or away, is seen in part, as other
// processes always may.
type gate struct{ mu sync.RWMutex }

// write begins a batch and returns what ends it.
func (g *gate) write() (end func()) {
	g.mu.Lock()
	unlock := sync.OnceFunc(g.mu.Unlock)
	t := time.AfterFunc(gateLimit, unlock)
	return func() {
		t.Stop()
		unlock()
	}
}

// read begins a search and returns what ends it.
func (g *gate) read() (end func()) {
	g.mu.RLock()
	return g.mu.RUnlock
}
