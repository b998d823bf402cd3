package workspace

import (
	"context"
	"sync"
)

// run is one run of the indexer. It belongs to the engine, not to who asked
// for it: any number of callers follow it, and one that goes away stops nothing.
type run struct {
	cancel context.CancelFunc
	mends  bool          // does less than a run that somebody asks for, which takes its place
	done   chan struct{} // closed at the end; report and err are set before

	report *IndexReport
	err    error

	mu       sync.Mutex
	latest   Progress
	watchers map[chan Progress]bool
}

// startRun runs work in a goroutine of its own.
func startRun(work func(ctx context.Context, progress func(Progress)) (*IndexReport, error)) *run {
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{cancel: cancel, done: make(chan struct{}), watchers: map[chan Progress]bool{}, latest: Progress{Phase: "starting"}}
	go func() {
		defer cancel()
		defer close(r.done)
		r.report, r.err = work(ctx, r.publish)
	}()
	return r
}

// publish hands progress to who follows. A slow follower skips steps: each
// holds one unread step, and the newest replaces it.
func (r *run) publish(p Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Searchable = p.Searchable || r.latest.Searchable
	r.latest = p
	for w := range r.watchers {
		select {
		case <-w:
		default:
		}
		w <- p // has room: only publish sends, under the mutex
	}
}

// progress is the newest step.
func (r *run) progress() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest
}

// follow waits for the end of the run or of ctx, and tells progress on the way
// from the caller's own goroutine.
func (r *run) follow(ctx context.Context, progress func(Progress)) (*IndexReport, error) {
	var steps chan Progress
	if progress != nil {
		steps = make(chan Progress, 1)
		r.mu.Lock()
		steps <- r.latest
		r.watchers[steps] = true
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.watchers, steps)
		}()
	}
	for {
		select {
		case p := <-steps:
			progress(p)
		case <-r.done:
			return r.report, r.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// running reports whether the run has not ended yet.
func (r *run) running() bool {
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}
