package qdrant

import (
	"context"
	"sync"
	"time"
)

const (
	// failuresToOpen is how many calls in a row have to fail, each with its
	// repetitions, before the breaker refuses others.
	failuresToOpen = 2
	// probeEvery is how often an unavailable server is probed; with the waits of
	// the connection it bounds how late its return is noticed.
	probeEvery = 250 * time.Millisecond
)

// breaker keeps calls from waiting for an unavailable server. While it is open it
// probes the server, and closes when the server answers.
type breaker struct {
	probe func(context.Context) error

	mu       sync.Mutex
	failures int
	reason   error // why it is open; nil while it is closed
	stop     context.CancelFunc
	stopped  chan struct{} // closed when the probing has ended
	done     bool
}

// err is why the breaker is open, nil when it is not.
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

// recover probes until the server answers.
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

// close ends the probing.
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
