package stage

import (
	"context"
	"time"
)

// ResendAfter is how long after a transition its job is published again unless it
// was postponed: the process that stored the transition may have died before it
// published the job.
const ResendAfter = 10 * time.Second

// Retention of ended tasks.
const (
	// KeepActive is how long the active copy of a task outlives its end.
	KeepActive = 600 * time.Second
	// KeepArchive is how long the archived copy and the log outlive it.
	KeepArchive = 7 * 24 * time.Hour
)

// Change computes the transition of a task. Stores may call it several times,
// each time with the stored state. It must not change s or depend on anything else.
type Change func(s *State) (*State, *Effects, error)

// Tasks stores tasks. Returned states belong to the caller. All
// methods of this and the next interfaces may be called concurrently, from any
// number of processes; those of a server that cannot be reached return an
// *Error with CodeUnavailable.
type Tasks interface {
	// Create stores a new task. Its id must be new (CodeExists).
	Create(ctx context.Context, s *State, fx *Effects) error
	// Update applies one change atomically. The new state and its log entry are
	// on disk before Update returns. Update returns an error of fn unchanged and
	// then stores nothing.
	Update(ctx context.Context, id string, fn Change) (*State, *Effects, error)
	// Load returns a task, active or archived, or CodeNotFound.
	Load(ctx context.Context, id string) (*State, error)
	// List returns tasks, newest first.
	List(ctx context.Context, q Query) ([]*State, error)
}

// Query narrows a List. Zero fields do not.
type Query struct {
	UserID string
	Status Status
	Limit  int // 0 means 50; at most 1000
}

// Bound is the limit of a query.
func (q Query) Bound() int {
	switch {
	case q.Limit <= 0:
		return 50
	case q.Limit > 1000:
		return 1000
	}
	return q.Limit
}

// Matches reports whether the query selects the task.
func (q Query) Matches(s *State) bool {
	return (q.UserID == "" || q.UserID == s.UserID) && (q.Status == "" || q.Status == s.Status)
}

// Timers list the tasks that need attention, the oldest first.
type Timers interface {
	// Due lists tasks whose Deadline is not after now.
	Due(ctx context.Context, now time.Time, limit int) ([]string, error)
	// Unsent lists the current jobs of tasks that are due to be published again:
	// ResendAfter the transition, unless postponed.
	Unsent(ctx context.Context, now time.Time, limit int) ([]Job, error)
	// Postpone sets that time. It ignores jobs that are no longer current.
	Postpone(ctx context.Context, until time.Time, jobs ...Job) error
}

// Journal is the history of tasks.
type Journal interface {
	// Log returns every transition of a task in order, or CodeNotFound.
	Log(ctx context.Context, id string) ([]Entry, error)
	// Clean deletes active copies after KeepActive and archived tasks after
	// KeepArchive, and returns the number of archived tasks deleted.
	Clean(ctx context.Context, now time.Time) (int, error)
}

// Store keeps tasks, their timers and their history.
type Store interface {
	Tasks
	Timers
	Journal
	Close() error
}

// Queue delivers jobs to workers.
type Queue interface {
	// Publish returns once the queue has stored the jobs.
	Publish(ctx context.Context, jobs ...Job) error
	// Consume calls do with jobs of the given stages, at most n at a time,
	// until ctx ends. A job for which do fails is delivered again.
	Consume(ctx context.Context, stages []Stage, n int, do func(context.Context, Job) error) error
	// Durable reports whether jobs outlive the process that published them.
	Durable() bool
	Close() error
}

// Archive is the durable copy behind a store whose memory may be lost. Its methods
// are idempotent.
type Archive interface {
	// Record stores transitions: the newest state and the entries of each task.
	// It ignores those of an earlier generation.
	Record(ctx context.Context, all ...Record) error
	// Resume begins a new generation of the unfinished ones among the tasks, for a
	// store that has lost them: it applies Restore and records the result.
	Resume(ctx context.Context, at time.Time, ids ...string) ([]*State, error)
	// Unfinished returns tasks that have not ended, ordered by id, from the first
	// after an id.
	Unfinished(ctx context.Context, after string, limit int) ([]*State, error)
	Load(ctx context.Context, id string) (*State, error)
	List(ctx context.Context, q Query) ([]*State, error)
	Journal
	Close() error
}

// Record is a transition: the state it led to and its entry in the log.
type Record struct {
	State *State `json:"state"`
	Entry Entry  `json:"entry"`
}
