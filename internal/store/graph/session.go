package graph

import (
	"context"
	"sync"
	"time"

	"cairn/graphrank"
)

// Bounds on what counts as one piece of work in a session.
const (
	// Window is how many uses one query is remembered with.
	Window = 32
	// Gap is the pause after which the next use has nothing to do with the last.
	Gap = 30 * time.Minute
)

// Session records one agent's session: what was used after what becomes
// sequence edges at once, and what was used after a query becomes its memory
// when the next query comes, or at Close. It is safe for concurrent use.
type Session struct {
	store *Store

	mu    sync.Mutex
	query string
	used  []Call // since the query, at most Window
	last  string
	at    time.Time
}

// NewSession starts a recording.
func (s *Store) NewSession() *Session { return &Session{store: s} }

// Query notes what is being looked for, and remembers what the query before it
// led to.
func (r *Session) Query(ctx context.Context, text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if normal(text) == normal(r.query) {
		return nil // asked again, or for the next page
	}
	err := r.flush(ctx)
	if len(text) <= MaxIntent {
		r.query = text
	}
	return err
}

// Used notes a successful use of a tool, or of a document under its DocumentID,
// and returns when it is on disk. Failed calls are not noted.
func (r *Session) Used(ctx context.Context, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.store.o.Now()
	if r.last != "" && now.Sub(r.at) > Gap {
		if err := r.flush(ctx); err != nil {
			return err
		}
		r.last = ""
	}
	before := r.last
	r.last, r.at = id, now
	if r.query != "" && len(r.used) < Window {
		r.used = append(r.used, Call{Tool: id})
	}
	if before == "" || before == id {
		return nil
	}
	return r.store.Observe(ctx, Sight{before, id, graphrank.Sequence})
}

// Close remembers what the last query led to.
func (r *Session) Close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flush(ctx)
}

// flush remembers the query with what was used since. Its edges were counted
// as they were seen. r.mu is held.
func (r *Session) flush(ctx context.Context) error {
	t := Trace{Intent: r.query, Calls: r.used}
	r.query, r.used = "", nil
	m, ok := t.Memory()
	if !ok {
		return nil
	}
	return r.store.write(ctx, change{intents: []Intent{m}})
}
