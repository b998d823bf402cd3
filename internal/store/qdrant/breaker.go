package qdrant

import (
	"context"
	"sync"
	"time"
)

const (
	// failuresToOpen is the number of consecutive calls that must fail, each after all
	// attempts, before the breaker opens.
	failuresToOpen = 2
	// probeEvery is the interval at which an unavailable server is probed.
	probeEvery = 250 * time.Millisecond
)

// breaker is a circuit breaker: while it is open, calls fail at once instead of waiting
// for an unavailable server. It then probes the server, and closes when the server
// answers.
type breaker struct {
	probe func(context.Context) error

	mu       sync.Mutex
	failures int
	reason   error // why the breaker is open; nil if it is closed
	stop     context.CancelFunc
	stopped  chan struct{} // closed when probing has ended
	done     bool
}

// err returns the error that opened the breaker, or nil if it is closed.
func (b *breaker) err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reason
}

func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = 0
}

func (b *breaker) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures++; b.failures < failuresToOpen || b.reason != nil || b.done {
		return
	}
	b.reason = err
	ctx, stop := context.WithCancel(context.Background())
	b.stop, b.stopped = stop, make(chan struct{})
	go b.recover(ctx, b.stopped)
}

// recover probes the server until it answers.
func (b *breaker) recover(ctx context.Context, stopped chan struct{}) {
	defer close(stopped)
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := b.probe(attempt)
		cancel()
		if err == nil {
			b.mu.Lock()
			b.failures, b.reason = 0, nil
			b.stop()
			b.mu.Unlock()
			return
		}
	}
}

// close stops probing.
func (b *breaker) close() {
	b.mu.Lock()
	b.done = true
	stop, stopped := b.stop, b.stopped
	b.mu.Unlock()
	if stop != nil {
		stop()
		<-stopped
	}
}
