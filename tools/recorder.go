package tools

import (
	"context"
	"log/slog"
	"sync"

	"cairn/internal/store/graph"
	"cairn/retriever"
)

// Recorder is an Engine that notes what one session searches for and what it
// reads then, for the graph of what is used together. Notes are written
// behind the answers, in order; where they come faster than the disk takes
// them, some are left out. Failed calls are not noted.
type Recorder struct {
	Engine

	session *graph.Session
	log     *slog.Logger
	notes   chan func(context.Context) error
	ended   chan struct{} // closed when the last note is written

	mu     sync.RWMutex // held for writing to close notes
	closed bool
}

// maxNotes is how many notes may wait for the disk.
const maxNotes = 64

// Record starts a recording over an engine. log receives what cannot be
// written; nil is silent. Close it after the session.
func Record(e Engine, usage *graph.Store, log *slog.Logger) *Recorder {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{Engine: e, session: usage.NewSession(), log: log, notes: make(chan func(context.Context) error, maxNotes), ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		for note := range r.notes {
			if err := note(context.Background()); err != nil {
				r.log.Warn("recording what was used", "error", err)
			}
		}
	}()
	return r
}

// note queues a note unless the queue is full or closed.
func (r *Recorder) note(fn func(context.Context) error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return
	}
	select {
	case r.notes <- fn:
	default:
	}
}

// Search notes the query.
func (r *Recorder) Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
	answer, err := r.Engine.Search(ctx, q)
	if err == nil {
		r.note(func(ctx context.Context) error { return r.session.Query(ctx, q.Text) })
	}
	return answer, err
}

// Read notes the document.
func (r *Recorder) Read(ctx context.Context, req retriever.ReadRequest) (*retriever.Reading, error) {
	reading, err := r.Engine.Read(ctx, req)
	if err == nil {
		path := reading.Path
		r.note(func(ctx context.Context) error { return r.session.Used(ctx, graph.DocumentID(path)) })
	}
	return reading, err
}

// ReadAll notes the documents.
func (r *Recorder) ReadAll(ctx context.Context, req retriever.ReadRequest) (*retriever.Readings, error) {
	all, err := r.Engine.ReadAll(ctx, req)
	if err == nil {
		for _, d := range all.Documents {
			path := d.Path
			r.note(func(ctx context.Context) error { return r.session.Used(ctx, graph.DocumentID(path)) })
		}
	}
	return all, err
}

// Close writes the notes that wait, and what the last query led to.
func (r *Recorder) Close() error {
	r.mu.Lock()
	already := r.closed
	r.closed = true
	if !already {
		close(r.notes)
	}
	r.mu.Unlock()
	<-r.ended
	return r.session.Close(context.Background())
}
