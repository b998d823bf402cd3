package tools

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"cairn/internal/suggest"
	"cairn/internal/toolbox"
	"cairn/internal/toolsearch"
	"cairn/internal/usage"
)

// Recorder records what each session searches for and what it then reads and
// fetches, for the graph of what is used together; usage.Session draws the
// conclusions, which are queued and committed once a second. Events that come
// faster than they are processed, and conclusions that the queue has no room for,
// are dropped. Failed calls are left out. It is safe for concurrent use.
type Recorder struct {
	box    *toolbox.Toolbox
	log    *slog.Logger
	events chan event
	ended  chan struct{} // closed when the last event is committed

	mu     sync.RWMutex // held for writing to close events
	closed bool

	queue usage.Change // of the goroutine that runs work
}

// event is something to add to a session.
type event struct {
	session string
	add     func(context.Context, *usage.Session) error
}

const (
	// maxEvents is how many events may wait.
	maxEvents = 64
	// maxQueue is how many observations and intents may wait for the commit.
	maxQueue = 4096
	// commitEvery is the time between two commits.
	commitEvery = time.Second
	// maxSessions is how many sessions are recorded at the same time; one more
	// ends the one that has been idle for longest.
	maxSessions = 256
)

// Record starts a recorder. log receives write errors; nil discards them. The
// caller closes it after the last session.
func Record(box *toolbox.Toolbox, log *slog.Logger) *Recorder {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{box: box, log: log, events: make(chan event, maxEvents), ended: make(chan struct{})}
	go r.work()
	return r
}

// work processes events until there are no more, then commits what the sessions used.
func (r *Recorder) work() {
	defer close(r.ended)
	ctx := context.Background()
	sessions, _ := simplelru.NewLRU(maxSessions, func(_ string, s *usage.Session) { r.warn(s.Close(ctx)) }) // the size is positive
	commit := time.NewTicker(commitEvery)
	defer commit.Stop()
	for {
		select {
		case <-commit.C:
			r.commit(ctx)
		case e, ok := <-r.events:
			if !ok {
				sessions.Purge()
				r.commit(ctx)
				return
			}
			// No client closes a session that it has left.
			for _, s, ok := sessions.GetOldest(); ok && s.Idle(); _, s, ok = sessions.GetOldest() {
				sessions.RemoveOldest()
			}
			s, ok := sessions.Get(e.session)
			if !ok {
				s = usage.NewSession(r.enqueue, nil)
				sessions.Add(e.session, s)
			}
			r.warn(e.add(ctx, s))
		}
	}
}

func (r *Recorder) warn(err error) {
	if err != nil {
		r.log.Warn("recording what was used", "error", err)
	}
}

// enqueue adds a change to the queue unless that is full.
func (r *Recorder) enqueue(_ context.Context, c usage.Change) error {
	if len(r.queue.Observations)+len(r.queue.Intents)+len(c.Observations)+len(c.Intents) <= maxQueue {
		r.queue.Observations, r.queue.Intents = append(r.queue.Observations, c.Observations...), append(r.queue.Intents, c.Intents...)
	}
	return nil
}

// commit writes the queue.
func (r *Recorder) commit(ctx context.Context) {
	c := r.queue
	r.queue = usage.Change{}
	r.warn(r.box.Observe(ctx, c))
}

// Close commits the waiting events and what the last sessions used.
func (r *Recorder) Close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.events)
	}
	r.mu.Unlock()
	<-r.ended
}

// record queues an event unless the queue is full or closed.
func (r *Recorder) record(e event) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return
	}
	select {
	case r.events <- e:
	default:
	}
}

type recordingKey struct{}

// recording is where the calls of one session are recorded. A nil one records nothing.
type recording struct {
	recorder *Recorder
	session  string
}

func withRecording(ctx context.Context, r *recording) context.Context {
	return context.WithValue(ctx, recordingKey{}, r)
}

func recordingOf(ctx context.Context) *recording {
	r, _ := ctx.Value(recordingKey{}).(*recording)
	return r
}

func (r *recording) record(add func(context.Context, *usage.Session) error) {
	if r != nil {
		r.recorder.record(event{r.session, add})
	}
}

// queried records a search of documents.
func (r *recording) queried(query string) {
	r.record(func(ctx context.Context, s *usage.Session) error { return s.Query(ctx, query) })
}

// read records the reading of a document.
func (r *recording) read(path string) {
	r.record(func(ctx context.Context, s *usage.Session) error { return s.Used(ctx, usage.DocumentID(path)) })
}

// searched records a search of tools with what it found.
func (r *recording) searched(query string, a *toolsearch.Answer) {
	if r == nil {
		return
	}
	found := make([]string, len(a.Tools))
	for i := range a.Tools {
		found[i] = a.Tools[i].ID
	}
	r.record(func(ctx context.Context, s *usage.Session) error { return s.Searched(ctx, query, found) })
}

// planned records a plan.
func (r *recording) planned(p *suggest.Suggestion) {
	if r == nil {
		return
	}
	intent := p.Intent
	var tools []string
	for i := range p.Tasks {
		tools = append(tools, p.Tasks[i].Tool)
	}
	var edges [][2]string
	for i := range p.DAG.Edges {
		edges = append(edges, [2]string{p.DAG.Edges[i].From, p.DAG.Edges[i].To})
	}
	r.record(func(ctx context.Context, s *usage.Session) error { return s.Planned(ctx, intent, tools, edges) })
}

// fetched records that the agent fetched a tool's schema.
func (r *recording) fetched(id string) {
	r.record(func(ctx context.Context, s *usage.Session) error { return s.Fetched(ctx, id) })
}

// reported records a report of what was used.
func (r *recording) reported(ids []string) {
	r.record(func(ctx context.Context, s *usage.Session) error { return s.Reported(ctx, ids) })
}
