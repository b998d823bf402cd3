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
// committed once a second. The recorder drops events and changes that exceed its queues. It
// does not record failed calls. It is safe for concurrent use.
type Recorder struct {
	box    *owner.Folder
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
func Record(box *owner.Folder, log *slog.Logger) *Recorder {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
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
	if c.Empty() {
		return
	}
	r.queue = usage.Change{}
	_, err := toolbox.ObserveOp.Call(ctx, r.box, c, nil)
	r.warn(err)
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

// recording names the recorder of a session.
type recording struct {
	recorder *Recorder
	session  string
}

func withRecording(ctx context.Context, r *recording) context.Context {
	return context.WithValue(ctx, recordingKey{}, r)
}

// record queues an event of the session of a call, if the session is recorded.
func record(ctx context.Context, add func(context.Context, *usage.Session) error) {
	if r, _ := ctx.Value(recordingKey{}).(*recording); r != nil {
		r.recorder.record(event{r.session, add})
	}
}
