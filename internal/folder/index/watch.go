package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"cairn/indexer"
	"cairn/internal/base/job"
	"cairn/internal/base/owner"
	"cairn/internal/store/docs"
	"cairn/internal/text/walk"
	"cairn/internal/text/watch"
)

// WatchEvent reports changes of a watched folder that keyword search now finds or, with
// Vectors, that search by meaning now finds.
type WatchEvent struct {
	// At is the time of the event, First that of the first change it reports.
	At    time.Time `json:"at"`
	First time.Time `json:"first,omitzero"`
	// Paths lists the changed files and folders, at most watchPaths of them. It is empty
	// if any file may have changed.
	Paths   []string `json:"paths,omitempty"`
	Changed int      `json:"changed,omitempty"` // new or changed documents
	Removed int      `json:"removed,omitempty"`
	// Vectors reports that every document has its vectors. Embedded counts the texts
	// embedded since the last event.
	Vectors  bool `json:"vectors,omitempty"`
	Embedded int  `json:"embedded,omitempty"`
	// Polling is why the watcher walks the folder to find changes; "" if the operating
	// system reports them.
	Polling string `json:"polling,omitempty"`
	// Problem is an error after which the watcher retries.
	Problem string `json:"problem,omitempty"`
}

// watchPaths bounds the paths in an event.
const watchPaths = 20

// Watch calls fn, from its own goroutine, with every indexed change of the folder, until
// ctx ends. The first event reports that watching has begun. After ctx has ended, the
// watcher keeps the index up to date for the next caller.
func (x *Index) Watch(ctx context.Context, fn func(WatchEvent)) error {
	<-x.started
	if x.options.Holder == nil {
		return ErrReadOnly
	}
	w, err := x.watching(true)
	if err != nil {
		return err
	}
	return w.follow(ctx, fn)
}

// watcher keeps the index of an owned folder up to date.
type watcher struct {
	*job.Job[none]
	x     *Index
	first bool          // begin with all files, because no run of the indexer does
	ready chan struct{} // closed when every later change is seen, or the watcher has failed
	embed chan struct{} // signals that there are chunks to embed; has room for one signal

	events atomic.Pointer[watch.Watcher] // nil before the folder is watched

	mu      sync.Mutex
	polling string
	problem string
	begun   bool // an event has been reported
	// The times of the oldest change that keyword search, or search by meaning, does not
	// find yet; zero if there is none.
	keywordSince, vectorsSince time.Time
	followers                  map[chan WatchEvent]bool
}

// watching returns the watcher, which it starts unless there is one.
func (x *Index) watching(first bool) (*watcher, error) {
	x.runs.Lock()
	defer x.runs.Unlock()
	if x.closed {
		return nil, owner.ErrEnded
	}
	if x.watcher != nil {
		return x.watcher, nil
	}
	x.filling.Add(1)
	w := &watcher{x: x, first: first, ready: make(chan struct{}), embed: make(chan struct{}, 1), followers: map[chan WatchEvent]bool{}}
	w.Job = job.Start(func(ctx context.Context, _ func(Progress)) (none, error) {
		ready := sync.OnceFunc(func() { close(w.ready) })
		defer ready()
		err := w.run(ctx, ready)
		if ctx.Err() != nil {
			return none{}, owner.ErrEnded
		}
		x.options.Logger.Error("watching the folder", "error", err)
		return none{}, err
	})
	x.watcher = w
	return w, nil
}

// run watches until ctx ends. It calls ready when it sees every later change.
func (w *watcher) run(ctx context.Context, ready func()) error {
	// The watcher has its own tree, because a rebuild of the index closes the stores' tree.
	tree, err := walk.Open(w.x.options.Selection.Roots()...)
	if err != nil {
		return err
	}
	defer tree.Close()
	most := max(time.Duration(w.x.options.Config.Watcher.DebounceMS)*time.Millisecond, time.Millisecond)
	watcher, err := watch.Open(ctx, tree, &watch.Options{
		Walk: w.x.options.Config.Walk(), Quiet: most / 5, Most: most, Poll: w.x.options.Poll, Held: w.held, Logger: w.x.options.Logger,
	})
	if err != nil {
		return err
	}
	w.events.Store(watcher)
	w.polls(watcher)
	ready()
	if !w.first {
		w.report(WatchEvent{})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var vectors sync.WaitGroup
	vectors.Go(func() { w.makeVectors(ctx) })
	err = watcher.Run(ctx, w.first, func(ctx context.Context, b watch.Batch) error {
		w.polls(watcher)
		return w.take(ctx, b)
	})
	cancel() // makeVectors ends with the watcher
	vectors.Wait()
	return errors.Join(err, watcher.Close())
}

// held returns the paths of the indexed files. It returns none if the index cannot be
// read: a run that looks at all files follows then.
func (w *watcher) held() []string {
	paths, err := w.x.indexed()
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

// take updates the documents and the keyword index for a batch, and signals makeVectors.
func (w *watcher) take(ctx context.Context, b watch.Batch) error {
	w.notice(b.First)
	var counts docs.Counts
	r, err := w.x.update(ctx, func(ctx context.Context, x *indexer.Indexer, s *Stores) (r *indexer.Report, err error) {
		if r, err = x.Refresh(ctx, b.Paths); err == nil {
			if b.Paths == nil { // nothing replaces the stores before the end of update
				w.x.complete.Store(true)
			}
			counts, err = s.Docs.Counts()
		}
		return r, err
	})
	e := WatchEvent{First: b.First, Paths: b.Paths[:min(len(b.Paths), watchPaths)]}
	if err != nil {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, owner.ErrEnded) { // at the end, or before a rebuild, which makes the batch due again
			e.Problem = err.Error()
			w.report(e)
		}
		return err
	}
	e.Changed, e.Removed = r.Added+r.Changed, r.Removed
	e.Vectors = counts.Vectors.Files == 0
	w.caughtUp(true, e.Vectors)
	w.x.mark(ctx, b)
	if !e.Vectors {
		select {
		case w.embed <- struct{}{}:
		default: // the embedding that is due includes this batch
		}
	}
	w.report(e)
	return nil
}

// firstPause and lastPause bound the pause before makeVectors retries after an error.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// makeVectors embeds the pending chunks after each signal on embed.
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
			again.Reset(pause) // a rebuild, which embeds the chunks itself
		case err != nil:
			w.x.options.Logger.Warn("embedding changed files", "error", err, "again_in", pause)
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

// notice records the time of changes that no search finds yet.
func (w *watcher) notice(first time.Time) {
	if first.IsZero() {
		first = w.x.options.Now()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, since := range []*time.Time{&w.keywordSince, &w.vectorsSince} {
		if since.IsZero() {
			*since = first
		}
	}
}

// caughtUp records that keyword search, or search by meaning, finds all noticed changes.
// A change during an embedding keeps the time of the changes before it until its own
// embedding.
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

// report sends an event to the followers. A follower whose channel is full loses its
// oldest event.
func (w *watcher) report(e WatchEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.At, e.Polling = w.x.options.Now(), w.polling
	w.problem, w.begun = e.Problem, true
	for f := range w.followers {
		if len(f) == cap(f) {
			select {
			case <-f:
			default: // the follower has just received one
			}
		}
		f <- e // there is room: all senders hold w.mu
	}
}

// follow calls fn with events from its own goroutine until the watcher or ctx ends.
func (w *watcher) follow(ctx context.Context, fn func(WatchEvent)) error {
	events := make(chan WatchEvent, 64)
	w.mu.Lock()
	w.followers[events] = true
	if w.begun {
		events <- WatchEvent{At: w.x.options.Now(), Polling: w.polling, Problem: w.problem}
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
		case <-w.Done():
			return w.end()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end returns why a watcher has ended.
func (w *watcher) end() error {
	_, err := w.Follow(context.Background(), nil)
	return err
}

// describe sets how the folder is watched, "events" or "polling" and the reason, since when
// searches lack changes, and the last problem.
func (w *watcher) describe(s *Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.KeywordSince, s.VectorsSince = w.keywordSince, w.vectorsSince
	s.Problem = cmp.Or(w.problem, s.Problem)
	switch {
	case !w.Running():
		s.Problem = fmt.Sprintf("the folder is not watched any more: %v", w.end())
	case w.polling != "":
		s.Watching = "polling: " + w.polling
	default:
		s.Watching = "events"
	}
}
