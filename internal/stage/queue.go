package stage

import (
	"context"
	"slices"
	"sync"
)

// maxQueued is the maximum number of jobs in a local queue. The engine publishes a job that
// does not fit again, because the store lists it as unsent.
const maxQueued = 1 << 10

// LocalQueue is a Queue within a process. It contains each job once, so a job that the store
// lists again does not run twice.
type LocalQueue struct {
	jobs chan Job
	mu   sync.Mutex
	held map[Job]bool // the queued and running jobs
}

// NewLocalQueue returns an empty queue.
func NewLocalQueue() *LocalQueue {
	return &LocalQueue{jobs: make(chan Job, maxQueued), held: map[Job]bool{}}
}

// Publish implements Queue.
func (q *LocalQueue) Publish(_ context.Context, jobs ...Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range jobs {
		if q.held[j] {
			continue
		}
		select {
		case q.jobs <- j:
			q.held[j] = true
		default: // full
		}
	}
	return nil
}

// Consume implements Queue. The store lists a failed job, and one of another stage, as unsent.
func (q *LocalQueue) Consume(ctx context.Context, stages []Stage, n int, do func(context.Context, Job) error) error {
	var workers sync.WaitGroup
	for range max(n, 1) {
		workers.Go(func() {
			for ctx.Err() == nil {
				select {
				case j := <-q.jobs:
					if slices.Contains(stages, j.Stage) {
						_ = do(ctx, j)
					}
					q.mu.Lock()
					delete(q.held, j)
					q.mu.Unlock()
				case <-ctx.Done():
				}
			}
		})
	}
	workers.Wait()
	return ctx.Err()
}

// Durable implements Queue.
func (q *LocalQueue) Durable() bool { return false }

// Close implements Queue.
func (q *LocalQueue) Close() error { return nil }
