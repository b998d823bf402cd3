// Package watch reports which files of a workspace have changed. It uses the operating
// system's events or, where there are none, repeated walks. It reports paths only; the
// indexer finds out what has changed.
package watch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"cairn/internal/text/walk"
)

// Options configures Open. Nil and the zero value mean the defaults.
type Options struct {
	// Walk selects the files; nil means configuration files. Folders that the walk does not
	// enter are not watched.
	Walk *walk.Options
	// Quiet is how long no change may happen before Run delivers a batch, so that a file
	// saved in several steps is reported once. 0 means 100 ms, or Most if that is less.
	Quiet time.Duration
	// Most bounds the time between the first change of a batch and its delivery. 0 means
	// 500 ms.
	Most time.Duration
	// Poll makes the Watcher walk even if the operating system reports changes.
	Poll bool
	// Held returns the paths of the files that the reader holds. A poller reports those
	// that do not exist. Nil means the files of the last walk.
	Held func() []string
	// PollEvery is the minimum time between two walks; 0 means 500 ms. Walking takes at
	// most a twentieth of the time.
	PollEvery time.Duration
	// MaxFolders is the number of folders beyond which the Watcher walks instead of using
	// events. 0 means the limit of the operating system: see maxFolders.
	MaxFolders int
	// Logger receives warnings. Nil discards them.
	Logger *slog.Logger
}

const (
	defaultQuiet = 100 * time.Millisecond
	defaultMost  = 500 * time.Millisecond
	defaultPoll  = 500 * time.Millisecond
	// pollShare is the time between two walks as a multiple of the duration of one.
	pollShare = 20
	// maxPaths bounds the paths of a batch. A batch of more changes has All set, because
	// looking at all files is hardly more work then.
	maxPaths = 10_000
	// firstRetry and lastRetry bound the pause before Run delivers a batch again after an
	// error.
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Batch is a set of changes that Run delivers together.
type Batch struct {
	// All reports that any file may have changed, because events were lost or the ignore
	// rules have changed. Paths is nil then.
	All bool
	// Paths are workspace paths of files and folders, sorted. A folder means everything
	// that is, or was, below it. The paths need not exist.
	Paths []string
	// First is the time of the first change.
	First time.Time
}

// Watcher watches the roots of a workspace from Open to Close.
type Watcher struct {
	tree    *walk.Tree
	options Options
	wants   func(name string) bool
	source  source
	reason  string // why the source is a poller; "" if it is not
	retry   time.Duration

	mu      sync.Mutex    // guards source and reason after Open, and the fields below
	pending pending       // not handed over yet
	handed  Batch         // being handled
	poked   chan struct{} // has a value after pending has grown
}

// source reports changes.
type source interface {
	// run calls tell with changes until ctx ends. Another error means that the source has
	// failed and may have missed changes.
	run(ctx context.Context, tell func(change)) error
	close() error
}

// change is a change of the file at path or, with all, of any file. The zero change means
// none.
type change struct {
	all  bool
	path string
}

// Open starts to watch the files of tree. The caller closes tree after the Watcher. Run
// reports every change after Open has returned.
func Open(ctx context.Context, tree *walk.Tree, o *Options) (*Watcher, error) {
	w := &Watcher{tree: tree, retry: firstRetry, options: *cmp.Or(o, &Options{})}
	w.options.Most = cmp.Or(w.options.Most, defaultMost)
	w.options.Quiet = min(cmp.Or(w.options.Quiet, defaultQuiet), w.options.Most)
	w.options.PollEvery = cmp.Or(w.options.PollEvery, defaultPoll)
	w.options.MaxFolders = cmp.Or(w.options.MaxFolders, maxFolders)
	w.options.Logger = cmp.Or(w.options.Logger, slog.New(slog.DiscardHandler))
	w.wants = w.options.Walk.Wants()
	w.reason = "requested"
	if !w.options.Poll {
		var err error
		w.source, err = openEvents(ctx, w)
		if err == nil {
			w.reason = ""
			return w, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		w.reason = err.Error()
		w.options.Logger.Warn("finding changes by walking the folder repeatedly", "reason", err)
	}
	var err error
	w.source, err = openPoller(ctx, w)
	return w, err
}

// Polling returns why the Watcher walks to find changes; "" means that it uses events. Run
// can fall back to walking.
func (w *Watcher) Polling() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason
}

// Close stops watching. Run must have returned.
func (w *Watcher) Close() error { return w.source.close() }

// Run calls handle with batches of changes until ctx ends or the workspace can no longer be
// walked, and returns that error. If all is set, it begins with a Batch of All. Calls of
// handle do not overlap; Run collects further changes during a call. If handle returns an
// error, Run calls it again later with that batch and the changes since.
func (w *Watcher) Run(ctx context.Context, all bool, handle func(context.Context, Batch) error) error {
	w.poked = make(chan struct{}, 1)
	if all {
		w.tell(change{all: true})
	}
	for {
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- w.source.run(running, w.tell) }()
		err := w.collect(running, ended, handle)
		stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// The source has failed. A poller fails only if the workspace cannot be walked.
		if _, polls := w.source.(*poller); polls {
			return err
		}
		w.options.Logger.Warn("finding changes by walking the folder repeatedly", "reason", err)
		reason := err.Error()
		if err := w.source.close(); err != nil {
			w.options.Logger.Warn("closing the source of events", "error", err)
		}
		next, err := openPoller(ctx, w)
		w.mu.Lock()
		w.source, w.reason = next, reason
		w.mu.Unlock()
		if err != nil {
			return err
		}
		w.tell(change{all: true}) // there may have been changes in between
	}
}

// tell records a change for the next batch.
func (w *Watcher) tell(c change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending.add(c, time.Now()) {
		select {
		case w.poked <- struct{}{}:
		default:
		}
	}
}

// Unhandled returns every change made before the call that no completed call of Run's handle
// has processed. ok is false if the Watcher does not know: it polls, Run has ended, or the
// system does not report changes in their order.
func (w *Watcher) Unhandled() (b Batch, ok bool) {
	w.mu.Lock()
	e, ok := w.source.(*events)
	w.mu.Unlock()
	if !ok || !e.probe.pass() {
		return Batch{}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b.All = w.pending.all || w.handed.All
	b.Paths = append(slices.Collect(maps.Keys(w.pending.paths)), w.handed.Paths...)
	return b, true
}

// hand moves the pending changes to the batch that is handled, which is empty before.
func (w *Watcher) hand() Batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handed = w.pending.take()
	return w.handed
}

// handle ends the batch that is handled. After an error its changes are pending again.
func (w *Watcher) handle(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.pending.merge(w.handed)
	}
	w.handed = Batch{}
}

// waiting returns the time of the first pending change; ok is false if there is none.
func (w *Watcher) waiting() (first time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pending.first, !w.pending.empty()
}

// collect calls handle with the pending changes until the source has ended. It returns after
// the last call of handle has returned.
func (w *Watcher) collect(ctx context.Context, ended <-chan error, handle func(context.Context, Batch) error) error {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	var (
		handled chan error // receives the result of handle; nil while handle does not run
		retry   = w.retry
		due     bool
		last    time.Time // the first change of the batch that the timer is set for
	)
	for {
		if _, ok := w.waiting(); due && handled == nil && ok {
			due = false
			handled = make(chan error, 1)
			go func(b Batch, handled chan<- error) { handled <- handle(ctx, b) }(w.hand(), handled)
		}
		select {
		case <-w.poked:
			first, ok := w.waiting()
			if !ok {
				break // handed over already
			}
			if !first.Equal(last) {
				due, last = false, first
			}
			timer.Reset(min(w.options.Quiet, time.Until(first.Add(w.options.Most))))
		case <-timer.C:
			due = true
		case err := <-handled:
			handled = nil
			w.handle(err)
			if err == nil {
				retry = w.retry
				break
			}
			if ctx.Err() == nil {
				w.options.Logger.Warn("processing changed files", "error", err, "again_in", retry)
			}
			due = false
			timer.Reset(retry)
			retry = min(2*retry, lastRetry)
		case err := <-ended:
			if handled != nil {
				w.handle(<-handled)
			}
			return fmt.Errorf("watching: %w", err)
		}
	}
}

// pending holds changes that have not been delivered.
type pending struct {
	all   bool
	paths map[string]bool
	first time.Time
}

func (p *pending) empty() bool { return !p.all && len(p.paths) == 0 }

// add adds a change and reports whether it is not the zero change.
func (p *pending) add(c change, now time.Time) bool {
	if !c.all && c.path == "" {
		return false
	}
	if p.empty() {
		p.first = now
	}
	switch {
	case c.all:
		p.all, p.paths = true, nil
	case !p.all:
		if p.paths == nil {
			p.paths = map[string]bool{}
		}
		p.paths[c.path] = true
		if len(p.paths) > maxPaths {
			p.all, p.paths = true, nil
		}
	}
	return true
}

// take returns the changes as a batch and empties p.
func (p *pending) take() Batch {
	b := Batch{All: p.all, Paths: slices.Sorted(maps.Keys(p.paths)), First: p.first}
	p.all, p.paths = false, nil
	return b
}

// merge adds the changes of a batch that take has returned.
func (p *pending) merge(b Batch) {
	if b.All {
		p.add(change{all: true}, b.First)
	}
	for _, path := range b.Paths {
		p.add(change{path: path}, b.First)
	}
	p.first = b.First
}
