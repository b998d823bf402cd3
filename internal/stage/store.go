package stage

import (
	"cmp"
	"context"
	"time"
)

// ResendAfter is the time after a transition at which its job is published again unless it
// was postponed. The process that stored the transition may have ended before it published
// the job.
const ResendAfter = 10 * time.Second

// KeepArchive is the default time that a task and its log are kept after its end.
const KeepArchive = 7 * 24 * time.Hour

// Change computes the transition of a task. A store may call it several times, each time
// with the stored state, nil if there is none. It must not change s or have side effects.
type Change func(s *State) (*State, *Effects, error)

// Store stores tasks, their timers and their history. The caller owns the returned states.
// The methods may be called concurrently, from any number of processes. They return an *Error
// with CodeUnavailable if a server cannot be reached.
type Store interface {
	// Update applies a change atomically. It returns after the new state and its log
	// entry are on disk. If fn returns an error, Update stores nothing and returns that
	// error.
	Update(ctx context.Context, id string, fn Change) (*State, *Effects, error)
	// Load returns a task. The error has CodeNotFound for an unknown
	// id.
	Load(ctx context.Context, id string) (*State, error)
	// List returns tasks, newest first.
	List(ctx context.Context, q Query) ([]*State, error)
	// Due returns the ids of tasks whose Deadline is not after now, the earliest first.
	Due(ctx context.Context, now time.Time, limit int) ([]string, error)
	// Unsent returns the current jobs that are due to be published again, the earliest
	// first. By default a job is due ResendAfter its transition.
	Unsent(ctx context.Context, now time.Time, limit int) ([]Job, error)
	// Postpone sets the time at which jobs are due to be published again. It ignores jobs
	// that are no longer current.
	Postpone(ctx context.Context, until time.Time, jobs ...Job) error
	// Log returns every transition of a task in order. The error has CodeNotFound for an
	// unknown id.
	Log(ctx context.Context, id string) ([]Entry, error)
	// Clean deletes tasks keep after their end, and returns their number.
	Clean(ctx context.Context, now time.Time, keep time.Duration) (int, error)
	Close() error
}

// Query selects tasks for List. Zero fields select all.
type Query struct {
	UserID string
	Status Status
	Limit  int // 0 means 50; at most 1000
}

// Bound returns the maximum number of tasks for a query.
func (q Query) Bound() int { return min(cmp.Or(max(q.Limit, 0), 50), 1000) }

// Matches reports whether the query selects the task.
func (q Query) Matches(s *State) bool {
	return (q.UserID == "" || q.UserID == s.UserID) && (q.Status == "" || q.Status == s.Status)
}

// Queue delivers jobs to workers.
type Queue interface {
	// Publish returns once the queue has stored the jobs.
	Publish(ctx context.Context, jobs ...Job) error
	// Consume calls do with jobs of the given stages, at most n at a time, until ctx
	// ends. A job for which do returns an error is delivered again.
	Consume(ctx context.Context, stages []Stage, n int, do func(context.Context, Job) error) error
	// Durable reports whether jobs outlive the process that published them.
	Durable() bool
	Close() error
}
