package tools

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"cairn/internal/base/owner"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/usage"
)

// Recorder records the searches of each session and the documents and tools that it then
// uses. usage.Session derives the changes of the usage graph, which are queued and
// committed once a second. The recorder drops changes that exceed its queue. It does not
// record failed calls. It is safe for concurrent use.
type Recorder struct {
	box   *owner.Folder
	log   *slog.Logger
	close context.CancelFunc
	work  sync.WaitGroup // which commits

	mu       sync.Mutex
	sessions *simplelru.LRU[string, *usage.Session] // nil after Close
	queue    usage.Change
}

const (
	// maxQueue bounds the observations and intents that wait for the commit.
	maxQueue = 4096
	// commitEvery is the time between two commits.
	commitEvery = time.Second
	// maxSessions bounds the sessions in memory. A new one replaces the least recently
	// used.
	maxSessions = 256
)

// Record starts a recorder. log receives write errors; nil discards them. The caller must
// call Close after the last session.
func Record(box *owner.Folder, log *slog.Logger) *Recorder {
	r := &Recorder{box: box, log: cmp.Or(log, slog.New(slog.DiscardHandler))}
	r.sessions, _ = simplelru.NewLRU(maxSessions, func(_ string, s *usage.Session) { s.Close() }) // the size is positive
	ctx, stop := context.WithCancel(context.Background())
	r.close = stop
	r.work.Go(func() { r.commitAll(ctx) })
	return r
}

// commitAll commits the changes until ctx ends, and then the remaining ones.
func (r *Recorder) commitAll(ctx context.Context) {
	tick := time.NewTicker(commitEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			r.commit()
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	r.sessions.Purge()
	r.sessions = nil
	r.mu.Unlock()
	r.commit()
}

// enqueue adds a change to the queue unless the queue is full. The caller holds r.mu.
func (r *Recorder) enqueue(c usage.Change) {
	if r.queue.Len()+c.Len() <= maxQueue {
		r.queue.Observations, r.queue.Intents = append(r.queue.Observations, c.Observations...), append(r.queue.Intents, c.Intents...)
		r.queue.Traces = append(r.queue.Traces, c.Traces...)
	}
}

// commit writes the queue.
func (r *Recorder) commit() {
	r.mu.Lock()
	c := r.queue
	r.queue = usage.Change{}
	r.mu.Unlock()
	if c.Len() > 0 {
		if _, err := toolbox.ObserveOp.Call(context.Background(), r.box, c, nil); err != nil {
			r.log.Warn("recording usage", "error", err)
		}
	}
}

// Close commits the remaining changes.
func (r *Recorder) Close() {
	r.close()
	r.work.Wait()
}

// record calls add with a session, unless the recorder is closed.
func (r *Recorder) record(session string, add func(*usage.Session)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sessions == nil {
		return
	}
	// Clients may leave without closing their session.
	for _, s, ok := r.sessions.GetOldest(); ok && s.Idle(); _, s, ok = r.sessions.GetOldest() {
		r.sessions.RemoveOldest()
	}
	s, ok := r.sessions.Get(session)
	if !ok {
		s = usage.NewSession(r.enqueue, nil)
		r.sessions.Add(session, s)
	}
	add(s)
}
