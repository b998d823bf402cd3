package tools

import (
	"context"
	"log/slog"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"cairn/internal/suggest"
	"cairn/internal/toolsearch"
	"cairn/internal/usage"
	"cairn/retriever"
)

// Recorder notes what each session searches for and what it reads and fetches
// then, for the graph of what is used together; usage.Session says what becomes
// of it. Notes are written behind the answers, in order; where they come faster
// than the disk takes them, some are left out. Failed calls are not noted. It is
// safe for concurrent use.
type Recorder struct {
	usage *usage.Store
	log   *slog.Logger
	notes chan note
	ended chan struct{} // closed when the last note is written

	mu     sync.RWMutex // held for writing to close notes
	closed bool
}

// note is something to write about a session.
type note struct {
	session string
	write   func(context.Context, *usage.Session) error
}

const (
	// maxNotes is how many notes may wait for the disk.
	maxNotes = 64
	// maxRecorded is how many sessions are recorded at the same time; beyond, the
	// one that was silent for longest ends.
	maxRecorded = 256
)

// Record starts a recording. log receives what cannot be written; nil is silent.
// Close it after the last session.
func Record(usage *usage.Store, log *slog.Logger) *Recorder {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{usage: usage, log: log, notes: make(chan note, maxNotes), ended: make(chan struct{})}
	go r.work()
	return r
}

// work writes notes until there are no more, then what the sessions led to.
func (r *Recorder) work() {
	defer close(r.ended)
	ctx := context.Background()
	failed := func(err error) {
		if err != nil {
			r.log.Warn("recording what was used", "error", err)
		}
	}
	sessions, _ := simplelru.NewLRU(maxRecorded, func(_ string, s *usage.Session) { failed(s.Close(ctx)) }) // the size is positive
	for n := range r.notes {
		// A session that ended long ago has nobody who would close it.
		for _, s, ok := sessions.GetOldest(); ok && s.Idle(); _, s, ok = sessions.GetOldest() {
			sessions.RemoveOldest()
		}
		s, ok := sessions.Get(n.session)
		if !ok {
			s = r.usage.NewSession()
			sessions.Add(n.session, s)
		}
		failed(n.write(ctx, s))
	}
	sessions.Purge()
}

// Close writes the notes that wait, and what the last queries led to.
func (r *Recorder) Close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.notes)
	}
	r.mu.Unlock()
	<-r.ended
}

// note queues a note unless the queue is full or closed.
func (r *Recorder) note(n note) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return
	}
	select {
	case r.notes <- n:
	default:
	}
}

type notebookKey struct{}

// notebook is where the calls of one session are noted. A nil one notes nothing.
type notebook struct {
	recorder *Recorder
	session  string
}

// noting returns a context whose calls are noted as those of a session; "" is
// nobody's.
func (s *Server) noting(ctx context.Context, session string) context.Context {
	if s.options.Recorder == nil || session == "" {
		return ctx
	}
	return context.WithValue(ctx, notebookKey{}, &notebook{s.options.Recorder, session})
}

func notebookOf(ctx context.Context) *notebook {
	n, _ := ctx.Value(notebookKey{}).(*notebook)
	return n
}

func (n *notebook) note(write func(context.Context, *usage.Session) error) {
	if n != nil {
		n.recorder.note(note{n.session, write})
	}
}

// searched notes a search of tools with what it found.
func (n *notebook) searched(query string, a *toolsearch.Answer) {
	if n == nil {
		return
	}
	found := make([]string, len(a.Tools))
	for i := range a.Tools {
		found[i] = a.Tools[i].ID
	}
	n.note(func(ctx context.Context, s *usage.Session) error { return s.Searched(ctx, query, found) })
}

// planned notes a plan.
func (n *notebook) planned(p *suggest.Suggestion) {
	if n == nil {
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
	n.note(func(ctx context.Context, s *usage.Session) error { return s.Planned(ctx, intent, tools, edges) })
}

// fetched notes that a tool's schema was asked for.
func (n *notebook) fetched(id string) {
	n.note(func(ctx context.Context, s *usage.Session) error { return s.Fetched(ctx, id) })
}

// told notes a report of what was used.
func (n *notebook) told(ids []string) {
	n.note(func(ctx context.Context, s *usage.Session) error { return s.Told(ctx, ids) })
}

// recorded is an Engine that notes the searches and readings of sessions.
type recorded struct{ Engine }

// Search notes the query.
func (r recorded) Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
	answer, err := r.Engine.Search(ctx, q)
	if err == nil {
		notebookOf(ctx).note(func(ctx context.Context, s *usage.Session) error { return s.Query(ctx, q.Text) })
	}
	return answer, err
}

// Read notes the document.
func (r recorded) Read(ctx context.Context, req retriever.ReadRequest) (*retriever.Reading, error) {
	reading, err := r.Engine.Read(ctx, req)
	if err == nil {
		noteDocument(ctx, reading.Path)
	}
	return reading, err
}

// ReadAll notes the documents.
func (r recorded) ReadAll(ctx context.Context, req retriever.ReadRequest) (*retriever.Readings, error) {
	all, err := r.Engine.ReadAll(ctx, req)
	if err == nil {
		for _, d := range all.Documents {
			noteDocument(ctx, d.Path)
		}
	}
	return all, err
}

func noteDocument(ctx context.Context, path string) {
	notebookOf(ctx).note(func(ctx context.Context, s *usage.Session) error { return s.Used(ctx, usage.DocumentID(path)) })
}
