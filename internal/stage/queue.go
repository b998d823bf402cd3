package stage

import (
	"context"
	"slices"
	"sync"
)

// maxQueued is the maximum number of jobs in a local queue. The engine publishes a job that
// does not fit again, because the store lists it as unsent.
const maxQueued = 1 << 16

// LocalQueue is a Queue within a process. It contains each job once, so a job that the store
// lists again does not run twice.
type LocalQueue struct {
	mu      sync.Mutex
	jobs    []Job
	held    map[Job]bool  // the queued and running jobs
	changed chan struct{} // closed and replaced by Publish
}

// NewLocalQueue returns an empty queue.
func NewLocalQueue() *LocalQueue {
	return &LocalQueue{held: map[Job]bool{}, changed: make(chan struct{})}
}

// Publish implements Queue.
func (q *LocalQueue) Publish(_ context.Context, jobs ...Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range jobs {
		if q.held[j] || len(q.jobs) == maxQueued {
			continue
		}
		q.held[j] = true
		q.jobs = append(q.jobs, j)
	}
	close(q.changed)
	q.changed = make(chan struct{})
	return nil
}

// Consume implements Queue. A failed job is published again when the store lists it as
// unsent.
func (q *LocalQueue) Consume(ctx context.Context, stages []Stage, n int, do func(context.Context, Job) error) error {
	var workers sync.WaitGroup
	for range max(n, 1) {
		workers.Go(func() {
			for {
				j, ok := q.next(ctx, stages)
				if !ok {
					return
				}
				_ = do(ctx, j) // the store lists a failed job as unsent
				q.mu.Lock()
				delete(q.held, j)
				q.mu.Unlock()
			}
		})
	}
	workers.Wait()
	return ctx.Err()
}

// next waits for a job of one of the stages. It returns false if ctx has ended.
func (q *LocalQueue) next(ctx context.Context, stages []Stage) (Job, bool) {
	for {
		q.mu.Lock()
		if ctx.Err() != nil {
			q.mu.Unlock()
			return Job{}, false
		}
		i := slices.IndexFunc(q.jobs, func(j Job) bool { return slices.Contains(stages, j.Stage) })
		if i >= 0 {
			j := q.jobs[i]
			q.jobs = slices.Delete(q.jobs, i, i+1)
			q.mu.Unlock()
			return j, true
		}
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Durable implements Queue.
func (q *LocalQueue) Durable() bool { return false }

// Close implements Queue.
func (q *LocalQueue) Close() error { return nil }
