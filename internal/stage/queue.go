package stage

import (
	"context"
	"slices"
	"sync"
)

// maxQueued is the maximum number of jobs in a local queue. The engine publishes a job that
// does not fit again, because the store lists it as unsent.
const maxQueued = 1 << 14

// LocalQueue is a Queue within a process. It contains each job once, so a job that the store
// lists again does not run twice.
type LocalQueue struct {
	mu    sync.Mutex
	jobs  []Job
	held  map[Job]bool  // the queued and running jobs
	ready chan struct{} // has a value if there may be jobs
}

// NewLocalQueue returns an empty queue.
func NewLocalQueue() *LocalQueue {
	return &LocalQueue{held: map[Job]bool{}, ready: make(chan struct{}, 1)}
}

// Publish implements Queue.
func (q *LocalQueue) Publish(_ context.Context, jobs ...Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range jobs {
		if !q.held[j] && len(q.jobs) < maxQueued {
			q.held[j] = true
			q.jobs = append(q.jobs, j)
		}
	}
	q.wake()
	return nil
}

// wake wakes a worker if there are jobs. The caller holds q.mu.
func (q *LocalQueue) wake() {
	if len(q.jobs) > 0 {
		select {
		case q.ready <- struct{}{}:
		default:
		}
	}
}

// Consume implements Queue. The store lists a failed job, and one of another stage, as unsent.
func (q *LocalQueue) Consume(ctx context.Context, stages []Stage, n int, do func(context.Context, Job) error) error {
	var workers sync.WaitGroup
	for range max(n, 1) {
		workers.Go(func() {
			for ctx.Err() == nil {
				select {
				case <-q.ready:
					j, ok := q.take()
					if ok && slices.Contains(stages, j.Stage) {
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

// take removes and returns the first job.
func (q *LocalQueue) take() (j Job, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) == 0 {
		return Job{}, false
	}
	j, q.jobs = q.jobs[0], q.jobs[1:]
	q.wake()
	return j, true
}

// Durable implements Queue.
func (q *LocalQueue) Durable() bool { return false }

// Close implements Queue.
func (q *LocalQueue) Close() error { return nil }
