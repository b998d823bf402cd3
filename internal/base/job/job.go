// Package job runs work in the background. Any number of callers can follow its progress. It
// does not queue or schedule.
package job

import (
	"context"
	"fmt"
	"sync"
)

// Progress is the progress of a job.
type Progress struct {
	// Phase is the current work, such as "scan", "text" or "vectors".
	Phase string `json:"phase"`
	// Done and Total count files or chunks. Total is 0 while it is unknown.
	Done  int `json:"done"`
	Total int `json:"total,omitempty"`
	// Searchable reports that keyword search finds every file.
	Searchable bool `json:"searchable,omitempty"`
}

func (p Progress) String() string {
	switch {
	case p.Total > 0:
		return fmt.Sprintf("%s: %d of %d", p.Phase, p.Done, p.Total)
	case p.Done > 0:
		return fmt.Sprintf("%s: %d", p.Phase, p.Done)
	}
	return p.Phase
}

// Job is work in its own goroutine, with a result of type T. It continues if callers stop
// following it.
type Job[T any] struct {
	cancel context.CancelFunc
	done   chan struct{} // closed at the end; result and err are set before

	result T
	err    error

	mu        sync.Mutex
	latest    Progress
	followers map[chan Progress]bool
}

// Start runs work. It may call progress from any goroutine until it returns.
func Start[T any](work func(ctx context.Context, progress func(Progress)) (T, error)) *Job[T] {
	ctx, cancel := context.WithCancel(context.Background())
	j := &Job[T]{cancel: cancel, done: make(chan struct{}), followers: map[chan Progress]bool{}, latest: Progress{Phase: "starting"}}
	go func() {
		defer cancel()
		defer close(j.done)
		j.result, j.err = work(ctx, j.publish)
	}()
	return j
}

// publish sends progress to the followers. A channel holds one step, which the newest
// replaces, so that a slow follower skips steps.
func (j *Job[T]) publish(p Progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p.Searchable = p.Searchable || j.latest.Searchable
	j.latest = p
	for f := range j.followers {
		select {
		case <-f:
		default:
		}
		f <- p // there is room: all senders hold j.mu
	}
}

// Progress returns the newest step.
func (j *Job[T]) Progress() Progress {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.latest
}

// Follow waits for the end of the job or of ctx, and returns the result of the job. It calls
// progress, which may be nil, from its own goroutine.
func (j *Job[T]) Follow(ctx context.Context, progress func(Progress)) (T, error) {
	var steps chan Progress
	if progress != nil {
		steps = make(chan Progress, 1)
		j.mu.Lock()
		steps <- j.latest
		j.followers[steps] = true
		j.mu.Unlock()
		defer func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			delete(j.followers, steps)
		}()
	}
	for {
		select {
		case p := <-steps:
			progress(p)
		case <-j.done:
			return j.result, j.err
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
}

// Running reports whether the job has not ended yet.
func (j *Job[T]) Running() bool {
	select {
	case <-j.done:
		return false
	default:
		return true
	}
}

// Done returns a channel that is closed when the job has ended.
func (j *Job[T]) Done() <-chan struct{} { return j.done }

// Stop cancels the work and waits for its end.
func (j *Job[T]) Stop() {
	j.cancel()
	<-j.done
}
