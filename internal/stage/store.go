package stage

import (
	"context"
	"time"
)

// ResendAfter is how long after a transition its job is given to a queue again
// when nobody has postponed that: the process that stored it may have died
// before it could pass it on.
const ResendAfter = 10 * time.Second

// How long stores keep what is over.
const (
	// KeepActive is how long the active copy of a task outlives its end.
	KeepActive = 600 * time.Second
	// KeepArchive is how long its archived copy and log do.
	KeepArchive = 7 * 24 * time.Hour
)

// Change computes the transition of a task. Stores may call it several times,
// each time with what is stored then; it must not change s and depend on nothing else.
type Change func(s *State) (*State, *Effects, error)

// Tasks keeps the tasks themselves. Returned states belong to the caller. All
// methods of this and the next interfaces may be called concurrently, from any
// number of processes; those of a server that cannot be reached return an
// *Error with CodeUnavailable.
type Tasks interface {
	// Create stores a new task. Its id must be new (CodeExists).
	Create(ctx context.Context, s *State, fx *Effects) error
	// Update applies one change; no other change comes in between. What the
	// change returns is on disk, with its entry in the log, before Update
	// returns. An error of fn is returned as it is, and nothing is stored.
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

// Matches reports whether the query wants the task.
func (q Query) Matches(s *State) bool {
	return (q.UserID == "" || q.UserID == s.UserID) && (q.Status == "" || q.Status == s.Status)
}

// Timers say which tasks need attention. Both lists begin with the oldest.
type Timers interface {
	// Due lists tasks whose Deadline is not after now.
	Due(ctx context.Context, now time.Time, limit int) ([]string, error)
	// Unsent lists the current jobs of tasks whose time to be sent again is not after now:
	// ResendAfter the transition, unless postponed.
	Unsent(ctx context.Context, now time.Time, limit int) ([]Job, error)
	// Postpone sets that time. Jobs that are no longer current are passed over.
	Postpone(ctx context.Context, until time.Time, jobs ...Job) error
}

// Journal is the history.
type Journal interface {
	// Log returns every transition of a task in order, or CodeNotFound.
	Log(ctx context.Context, id string) ([]Entry, error)
	// Clean forgets what is over since KeepActive and KeepArchive, and returns
	// how many archived tasks went.
	Clean(ctx context.Context, now time.Time) (int, error)
}

// Store is all of it.
type Store interface {
	Tasks
	Timers
	Journal
	Close() error
}

// Queue brings jobs to workers.
type Queue interface {
	// Publish returns when the jobs are safe with the queue.
	Publish(ctx context.Context, jobs ...Job) error
	// Consume calls do with jobs of the given stages, at most n at a time,
	// until ctx ends. A job for which do fails is delivered again.
	Consume(ctx context.Context, stages []Stage, n int, do func(context.Context, Job) error) error
	// Durable reports whether jobs outlive the process that published them.
	Durable() bool
	Close() error
}

// Archive is where a store whose memory may be lost writes everything down.
// All its methods are idempotent.
type Archive interface {
	// Record keeps transitions: the newest state and the entries of each task.
	// Those of a generation that is over are passed over.
	Record(ctx context.Context, all ...Record) error
	// Resume begins a new generation of those of the tasks that have not ended, for a
	// store that has lost them: it applies Restore and records that.
	Resume(ctx context.Context, at time.Time, ids ...string) ([]*State, error)
	// Unfinished returns tasks that have not ended, by id, beginning after one.
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
