package workspace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cairn/indexer"
	"cairn/internal/store/docs"
	"cairn/internal/walk"
	"cairn/internal/watch"
)

// WatchEvent is something that a watched folder came to: changed files that
// keyword search sees now, or, with Vectors, that search by meaning sees.
type WatchEvent struct {
	// At is when the event was told, First when the first change was noticed.
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
	// operating system tells of them.
	Polling string `json:"polling,omitempty"`
	// Problem is what went wrong; it is tried again.
	Problem string `json:"problem,omitempty"`
}

// watchPaths is how many paths an event names.
const watchPaths = 20

// Watch follows what happens to the folder until ctx ends: files that change
// are indexed by whoever owns the folder, which is this process if nobody else
// is, and fn is told of it from the caller's goroutine. The first event comes
// when watching has begun. When the owner goes away, this process takes over
// and looks at everything once, so that nothing is missed. A folder that is
// removed meanwhile is waited for.
func (w *Workspace) Watch(ctx context.Context, fn func(WatchEvent)) error {
	begun, told := false, false
	tell := func(e WatchEvent) { begun = true; fn(e) }
	for {
		_, err := ask(ctx, w, func(e engine) (*struct{}, error) { return &struct{}{}, e.Watch(ctx, tell) })
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errReadOnly):
			if err := w.own(ctx); err != nil {
				return err
			}
			if err := w.whyUnwritable(); err != nil {
				return err
			}
		case begun && isFolder(err):
			if !told {
				fn(WatchEvent{At: w.options.Now(), Problem: err.Error()})
			}
			told = true
			if !waited(ctx, lookEvery) {
				return ctx.Err()
			}
			continue
		case !errors.Is(err, errGone):
			return err
		}
		told = false
	}
}

func isFolder(err error) bool {
	_, ok := errors.AsType[*FolderError](err)
	return ok
}

// waited waits for d, and reports whether ctx still holds.
func waited(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (missing) Watch(context.Context, func(WatchEvent)) error { return errReadOnly }

func (r *remote) Watch(ctx context.Context, fn func(WatchEvent)) error {
	_, err := receive[struct{}](ctx, r, opWatch, struct{}{}, func(line reply) {
		if line.Watch != nil {
			fn(*line.Watch)
		}
	})
	return err
}

// Watch implements engine. The watching belongs to l and goes on when ctx ends:
// who asks next is served by what has been seen.
func (l *local) Watch(ctx context.Context, fn func(WatchEvent)) error {
	if l.me == nil {
		return errReadOnly
	}
	if l.gone() {
		return errGone
	}
	l.runs.Lock()
	if l.closing {
		l.runs.Unlock()
		return errGone
	}
	if l.watching == nil {
		l.watching = l.startWatching(true)
	}
	w := l.watching
	l.runs.Unlock()
	return w.follow(ctx, fn)
}

// watching keeps the index of an owned folder up to date.
type watching struct {
	l      *local
	first  bool // look at everything at first: no run of the indexer does
	cancel context.CancelFunc
	ready  chan struct{} // closed when no change is missed from then on, or all will be
	done   chan struct{} // closed at the end
	embed  chan struct{} // has room for one: there is something to embed

	mu      sync.Mutex
	err     error // why it ended
	polling string
	problem string
	begun   bool // an event has been told
	// When the oldest change was noticed that keyword search, or search by
	// meaning, does not see yet; zero for none.
	keywordSince, vectorsSince time.Time
	followers                  map[chan WatchEvent]bool
}

// startWatching begins to watch in a goroutine of its own.
func (l *local) startWatching(first bool) *watching {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watching{
		l: l, first: first, cancel: cancel, ready: make(chan struct{}), done: make(chan struct{}), embed: make(chan struct{}, 1),
		followers: map[chan WatchEvent]bool{},
	}
	go func() {
		defer close(w.done)
		defer cancel()
		ready := sync.OnceFunc(func() { close(w.ready) })
		defer ready()
		err := w.run(ctx, ready)
		if ctx.Err() != nil {
			err = errGone
		} else {
			l.w.options.Logger.Error("watching the folder", "error", err)
		}
		w.mu.Lock()
		w.err = err
		w.mu.Unlock()
	}()
	return w
}

// run watches until ctx ends. ready is called when no change is missed any more.
func (w *watching) run(ctx context.Context, ready func()) error {
	// A tree of its own: that of the stores is closed when the index is rebuilt.
	tree, err := walk.Open(w.l.w.selection.Roots()...)
	if err != nil {
		return err
	}
	defer tree.Close()
	most := max(time.Duration(w.l.w.config.Watcher.DebounceMS)*time.Millisecond, time.Millisecond)
	watcher, err := watch.Open(ctx, tree, &watch.Options{
		Walk: w.l.w.config.Walk(), Quiet: most / 5, Most: most, Poll: w.l.w.options.Poll, Logger: w.l.w.options.Logger,
	})
	if err != nil {
		return err
	}
	w.polls(watcher)
	ready()
	if !w.first {
		w.tell(WatchEvent{})
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

func (w *watching) polls(by *watch.Watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polling = by.Polling()
}

// take brings keyword search up to a batch and has the vectors follow.
func (w *watching) take(ctx context.Context, b watch.Batch) error {
	w.notice(b.First)
	var counts docs.Counts
	r, err := w.l.work(ctx, func(ctx context.Context, x *indexer.Indexer, s *stores) (r *indexer.Report, err error) {
		if r, err = x.Refresh(ctx, b.Paths); err == nil {
			counts, err = s.docs.Counts()
		}
		return r, err
	})
	e := WatchEvent{First: b.First, Paths: b.Paths[:min(len(b.Paths), watchPaths)]}
	if err != nil {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, errGone) { // that is the end, or a rebuild; it comes again then
			e.Problem = err.Error()
			w.tell(e)
		}
		return err
	}
	e.Changed, e.Removed = r.Added+r.Changed, r.Removed
	e.Vectors = counts.Vectors.Files == 0
	w.caughtUp(true, e.Vectors)
	if !e.Vectors {
		select {
		case w.embed <- struct{}{}:
		default: // who takes the one that is there sees this batch as well
		}
	}
	w.tell(e)
	return nil
}

// firstPause and lastPause bound the wait before vectors that could not be made
// are tried again.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// makeVectors runs behind keyword search.
func (w *watching) makeVectors(ctx context.Context) {
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
		r, err := w.l.work(ctx, func(ctx context.Context, x *indexer.Indexer, _ *stores) (*indexer.Report, error) { return x.Embed(ctx) })
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, context.Canceled), errors.Is(err, errGone):
			again.Reset(pause) // a rebuild, which does the work itself
		case err != nil:
			w.l.w.options.Logger.Warn("embedding changed files", "error", err, "again_in", pause)
			w.tell(WatchEvent{Problem: err.Error()})
			again.Reset(pause)
			pause = min(2*pause, lastPause)
		default:
			pause = firstPause
			w.caughtUp(false, true)
			w.tell(WatchEvent{Vectors: true, Embedded: r.Embedded})
		}
	}
}

// notice is told of changes that no search sees yet.
func (w *watching) notice(first time.Time) {
	if first.IsZero() {
		first = w.l.w.options.Now()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, since := range []*time.Time{&w.keywordSince, &w.vectorsSince} {
		if since.IsZero() {
			*since = first
		}
	}
}

// caughtUp is told that keyword search sees all that was noticed, and whether
// search by meaning does. A change that comes while vectors are made counts as
// old as those before it until it has its own.
func (w *watching) caughtUp(keyword, vectors bool) {
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
func (w *watching) behind() (keyword, vectors time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keywordSince, w.vectorsSince
}

// tell hands an event to who follows. Each has room for a number of unread
// events; one that does not read loses the oldest.
func (w *watching) tell(e WatchEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.At, e.Polling = w.l.w.options.Now(), w.polling
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

// follow tells events from the caller's goroutine until the watching or ctx ends.
func (w *watching) follow(ctx context.Context, fn func(WatchEvent)) error {
	events := make(chan WatchEvent, 64)
	w.mu.Lock()
	w.followers[events] = true
	if w.begun {
		events <- WatchEvent{At: w.l.w.options.Now(), Polling: w.polling, Problem: w.problem}
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
func (w *watching) state() (how, problem string) {
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
