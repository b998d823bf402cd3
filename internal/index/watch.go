package index

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cairn/indexer"
	"cairn/internal/owner"
	"cairn/internal/store/docs"
	"cairn/internal/walk"
	"cairn/internal/watch"
)

// WatchEvent is a change of a watched folder: changed files that
// keyword search sees now, or, with Vectors, that search by meaning sees.
type WatchEvent struct {
	// At is when the event was reported, First when the first change was noticed.
	At    time.Time `json:"at"`
	First time.Time `json:"first,omitzero"`
	// Paths are the files and folders that changed, none if anything may have;
	// at most watchPaths are named.
	Paths   []string `json:"paths,omitempty"`
	Changed int      `json:"changed,omitempty"` // new or changed documents
	Removed int      `json:"removed,omitempty"`
	// Vectors says that every document has its vectors, after Embedded texts
	// were embedded.
	Vectors  bool `json:"vectors,omitempty"`
	Embedded int  `json:"embedded,omitempty"`
	// Polling says why changes are looked for by walking; "" where the
	// operating system reports them.
	Polling string `json:"polling,omitempty"`
	// Problem is what went wrong; it is tried again.
	Problem string `json:"problem,omitempty"`
}

// watchPaths is how many paths an event names.
const watchPaths = 20

// Watch calls fn, from the caller's goroutine, with every change of the folder that is
// indexed, until ctx ends. The first event comes when watching has begun. The watcher
// stays when ctx ends, for the next caller.
func (x *Index) Watch(ctx context.Context, fn func(WatchEvent)) error {
	<-x.started
	if x.o.Holder == nil {
		return ErrReadOnly
	}
	x.runs.Lock()
	if x.closed {
		x.runs.Unlock()
		return owner.ErrEnded
	}
	if x.watcher == nil {
		x.watcher = x.startWatching(true)
	}
	w := x.watcher
	x.runs.Unlock()
	return w.follow(ctx, fn)
}

// watcher keeps the index of an owned folder up to date.
type watcher struct {
	x      *Index
	first  bool // look at everything at first: no run of the indexer does
	cancel context.CancelFunc
	ready  chan struct{} // closed when no change is missed from then on, or all will be
	done   chan struct{} // closed at the end
	embed  chan struct{} // has room for one: there is something to embed

	indexed ofDocuments[[]string] // the paths of the files

	mu      sync.Mutex
	err     error // why it ended
	polling string
	problem string
	begun   bool // an event has been reported
	// When the oldest change was noticed that keyword search, or search by
	// meaning, does not see yet; zero for none.
	keywordSince, vectorsSince time.Time
	followers                  map[chan WatchEvent]bool
}

// startWatching begins to watch in a goroutine of its own.
func (x *Index) startWatching(first bool) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{
		x: x, first: first, cancel: cancel, ready: make(chan struct{}), done: make(chan struct{}), embed: make(chan struct{}, 1),
		followers: map[chan WatchEvent]bool{},
	}
	go func() {
		defer close(w.done)
		defer cancel()
		ready := sync.OnceFunc(func() { close(w.ready) })
		defer ready()
		err := w.run(ctx, ready)
		if ctx.Err() != nil {
			err = owner.ErrEnded
		} else {
			x.o.Logger.Error("watching the folder", "error", err)
		}
		w.mu.Lock()
		w.err = err
		w.mu.Unlock()
	}()
	return w
}

// run watches until ctx ends. ready is called when no change is missed any more.
func (w *watcher) run(ctx context.Context, ready func()) error {
	// A tree of its own: that of the stores is closed when the index is rebuilt.
	tree, err := walk.Open(w.x.o.Selection.Roots()...)
	if err != nil {
		return err
	}
	defer tree.Close()
	most := max(time.Duration(w.x.o.Config.Watcher.DebounceMS)*time.Millisecond, time.Millisecond)
	watcher, err := watch.Open(ctx, tree, &watch.Options{
		Walk: w.x.o.Config.Walk(), Quiet: most / 5, Most: most, Poll: w.x.o.Poll, Held: w.held, Logger: w.x.o.Logger,
	})
	if err != nil {
		return err
	}
	w.polls(watcher)
	ready()
	if !w.first {
		w.report(WatchEvent{})
	}
	var vectors sync.WaitGroup
	vectors.Go(func() { w.makeVectors(ctx) })
	err = watcher.Run(ctx, w.first, func(ctx context.Context, b watch.Batch) error {
		w.polls(watcher)
		return w.take(ctx, b)
	})
	w.cancel() // makeVectors ends with the watcher
	vectors.Wait()
	return errors.Join(err, watcher.Close())
}

// held returns the paths of the indexed files; none where the index cannot be read, which
// a run that looks at all files follows.
func (w *watcher) held() []string {
	s, err := w.x.use()
	if err != nil {
		return nil
	}
	defer w.x.mu.RUnlock()
	if s == nil {
		return nil
	}
	paths, err := w.indexed.get(s.Docs, func(r *docs.Reader) (paths []string, err error) {
		err = r.Files("", func(f docs.File) bool { paths = append(paths, f.Path); return true })
		return paths, err
	})
	if err != nil {
		return nil
	}
	return paths
}

func (w *watcher) polls(by *watch.Watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polling = by.Polling()
}

// take brings keyword search up to a batch and has the vectors follow.
func (w *watcher) take(ctx context.Context, b watch.Batch) error {
	w.notice(b.First)
	var counts docs.Counts
	r, err := w.x.update(ctx, func(ctx context.Context, x *indexer.Indexer, s *Stores) (r *indexer.Report, err error) {
		if r, err = x.Refresh(ctx, b.Paths); err == nil {
			counts, err = s.Docs.Counts()
		}
		return r, err
	})
	e := WatchEvent{First: b.First, Paths: b.Paths[:min(len(b.Paths), watchPaths)]}
	if err != nil {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, owner.ErrEnded) { // that is the end, or a rebuild; it comes again then
			e.Problem = err.Error()
			w.report(e)
		}
		return err
	}
	e.Changed, e.Removed = r.Added+r.Changed, r.Removed
	e.Vectors = counts.Vectors.Files == 0
	w.caughtUp(true, e.Vectors)
	if !e.Vectors {
		select {
		case w.embed <- struct{}{}:
		default: // the embedding that is due covers this batch as well
		}
	}
	w.report(e)
	return nil
}

// firstPause and lastPause bound the wait before vectors that could not be made
// are tried again.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// makeVectors runs behind keyword search.
func (w *watcher) makeVectors(ctx context.Context) {
	again := time.NewTimer(time.Hour)
	again.Stop()
	defer again.Stop()
	for pause := firstPause; ; {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		case <-w.embed:
		}
		r, err := w.x.update(ctx, func(ctx context.Context, x *indexer.Indexer, _ *Stores) (*indexer.Report, error) { return x.Embed(ctx) })
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, context.Canceled), errors.Is(err, owner.ErrEnded):
			again.Reset(pause) // a rebuild, which does the work itself
		case err != nil:
			w.x.o.Logger.Warn("embedding changed files", "error", err, "again_in", pause)
			w.report(WatchEvent{Problem: err.Error()})
			again.Reset(pause)
			pause = min(2*pause, lastPause)
		default:
			pause = firstPause
			w.caughtUp(false, true)
			w.report(WatchEvent{Vectors: true, Embedded: r.Embedded})
		}
	}
}

// notice records changes that no search sees yet.
func (w *watcher) notice(first time.Time) {
	if first.IsZero() {
		first = w.x.o.Now()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, since := range []*time.Time{&w.keywordSince, &w.vectorsSince} {
		if since.IsZero() {
			*since = first
		}
	}
}

// caughtUp records that keyword search sees all that was noticed, and whether
// search by meaning does. A change that comes while vectors are made counts as
// old as those before it until it has its own.
func (w *watcher) caughtUp(keyword, vectors bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if keyword {
		w.keywordSince = time.Time{}
	}
	if vectors && w.keywordSince.IsZero() {
		w.vectorsSince = time.Time{}
	}
}

// behind says since when there are changes that searches do not see.
func (w *watcher) behind() (keyword, vectors time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keywordSince, w.vectorsSince
}

// report passes an event to the followers. Each has room for a number of unread
// events; one that does not read loses the oldest.
func (w *watcher) report(e WatchEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.At, e.Polling = w.x.o.Now(), w.polling
	w.problem, w.begun = e.Problem, true
	for f := range w.followers {
		if len(f) == cap(f) {
			select {
			case <-f:
			default: // read just now
			}
		}
		f <- e // has room: only tell sends, under the mutex
	}
}

// follow calls fn with events from the caller's goroutine until the watching or ctx ends.
func (w *watcher) follow(ctx context.Context, fn func(WatchEvent)) error {
	events := make(chan WatchEvent, 64)
	w.mu.Lock()
	w.followers[events] = true
	if w.begun {
		events <- WatchEvent{At: w.x.o.Now(), Polling: w.polling, Problem: w.problem}
	}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.followers, events)
	}()
	for {
		select {
		case e := <-events:
			fn(e)
		case <-w.done:
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// state says how the folder is watched: "events", or "polling" and why; "" is
// not at all, with the reason in problem.
func (w *watcher) state() (how, problem string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return "", fmt.Sprintf("the folder is not watched any more: %v", w.err)
	case w.polling != "":
		return "polling: " + w.polling, w.problem
	}
	return "events", w.problem
}
