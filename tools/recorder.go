package tools

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"cairn/graphrank"
	"cairn/internal/toolbox"
	"cairn/internal/toolbox/suggest"
	"cairn/internal/toolbox/toolsearch"
	"cairn/internal/toolbox/usage"
)

// Recorder records the searches of each session and the documents and tools that it then
// uses. usage.Session derives the changes of the usage graph, which are queued and
// committed once a second. The recorder drops events and changes that exceed its queues. It
// does not record failed calls. It is safe for concurrent use.
type Recorder struct {
	box    *toolbox.Toolbox
	log    *slog.Logger
	events chan event
	ended  chan struct{} // closed after the last commit

	mu     sync.RWMutex // locked for writing to close events
	closed bool

	queue usage.Change // only for the goroutine of work
}

// event is a change of a session.
type event struct {
	session string
	add     func(context.Context, *usage.Session) error
}

const (
	// maxEvents bounds the events that wait for processing.
	maxEvents = 64
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
func Record(box *toolbox.Toolbox, log *slog.Logger) *Recorder {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{box: box, log: log, events: make(chan event, maxEvents), ended: make(chan struct{})}
	go r.work()
	return r
}

// work processes events until the channel is closed, and then commits the remaining
// changes.
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
			// Clients may leave without closing their session.
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
		r.log.Warn("recording usage", "error", err)
	}
}

// enqueue adds a change to the queue unless the queue is full.
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

// Close processes the waiting events and commits the remaining changes.
func (r *Recorder) Close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.events)
	}
	r.mu.Unlock()
	<-r.ended
}

// record queues an event unless the queue is full or the recorder is closed.
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

// recording records the calls of one session. A nil recording records nothing.
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
	r.record(func(ctx context.Context, s *usage.Session) error { return s.Used(ctx, graphrank.DocumentID(path)) })
}

// searched records a search of tools and its results.
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

// fetched records that the client fetched the schema of a tool.
func (r *recording) fetched(id string) {
	r.record(func(ctx context.Context, s *usage.Session) error { return s.Fetched(ctx, id) })
}

// reported records a report of used tools.
func (r *recording) reported(ids []string) {
	r.record(func(ctx context.Context, s *usage.Session) error { return s.Reported(ctx, ids) })
}
