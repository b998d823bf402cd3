package stage

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// maxQueued is the maximum number of jobs that wait in a local queue. The engine publishes a job
// that does not fit again, because the store lists it as unsent.
const maxQueued = 1 << 10

// LocalQueue is a Queue within a process. It contains each job once, so a job that the store
// lists again does not run twice. It delivers the job of the latest run first: with more tasks
// than the workers can end in time, some are answered, instead of all being half done.
type LocalQueue struct {
	mu    sync.Mutex
	jobs  []Job         // the latest run first, then as published
	held  map[Job]bool  // the queued and running jobs
	ready chan struct{} // a token for each queued job
}

// NewLocalQueue returns an empty queue.
func NewLocalQueue() *LocalQueue {
	return &LocalQueue{held: map[Job]bool{}, ready: make(chan struct{}, maxQueued)}
}

// Publish implements Queue.
func (q *LocalQueue) Publish(_ context.Context, jobs ...Job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range jobs {
		if q.held[j] {
			continue
		}
		at, _ := slices.BinarySearchFunc(q.jobs, j.Run, func(other Job, run int) int {
			return cmp.Or(cmp.Compare(run, other.Run), -1) // after those of the same run
		})
		q.jobs, q.held[j] = slices.Insert(q.jobs, at, j), true
		if len(q.jobs) <= maxQueued {
			q.ready <- struct{}{}
			continue
		}
		delete(q.held, q.jobs[maxQueued]) // full
		q.jobs = q.jobs[:maxQueued]
	}
	return nil
}

// next removes and returns the first job.
func (q *LocalQueue) next() Job {
	q.mu.Lock()
	defer q.mu.Unlock()
	j := q.jobs[0]
	q.jobs = slices.Delete(q.jobs, 0, 1)
	return j
}

// Consume implements Queue. The store lists a failed job, and one of another stage, as unsent.
func (q *LocalQueue) Consume(ctx context.Context, stages []Stage, n int, do func(context.Context, Job) error) error {
	var workers sync.WaitGroup
	for range max(n, 1) {
		workers.Go(func() {
			for ctx.Err() == nil {
				select {
				case <-q.ready:
					j := q.next()
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
