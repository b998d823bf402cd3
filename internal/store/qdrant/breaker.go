package qdrant

import (
	"context"
	"sync"
	"time"

	pb "github.com/qdrant/go-client/qdrant"
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
	mu       sync.Mutex
	failures int
	reason   error // why the breaker is open; nil if it is closed
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

// failed counts a failed call. If that opens the breaker, it probes the server in the
// background until it answers.
func (c *Client) failed(err error) {
	b := &c.breaker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures++; b.failures < failuresToOpen || b.reason != nil || c.open.Err() != nil {
		return
	}
	b.reason = err
	c.tasks.Go(func() {
		tick := time.NewTicker(probeEvery)
		defer tick.Stop()
		for {
			select {
			case <-c.open.Done():
				return
			case <-tick.C:
			}
			attempt, cancel := context.WithTimeout(c.open, 2*time.Second)
			_, err := c.grpc.Qdrant().HealthCheck(attempt, &pb.HealthCheckRequest{})
			cancel()
			if err == nil {
				b.mu.Lock()
				b.failures, b.reason = 0, nil
				b.mu.Unlock()
				return
			}
		}
	})
}
