// Package watch notices which files of a workspace change, by the operating
// system's events or, where there are none, by looking again and again. It
// names paths; what became of them is for the indexer, which looks at each.
package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"cairn/internal/walk"
)

// Options are the knobs of Open. Nil and the zero value mean the defaults.
type Options struct {
	// Walk says which files are indexed; folders that it leaves out are not watched.
	Walk *walk.Options
	// Quiet is how long nothing may happen before changes are handed over, so
	// that what is saved in several steps is looked at once. 0 is 100 ms, or
	// Most if that is less.
	Quiet time.Duration
	// Most bounds the wait from the first change on. 0 is 500 ms.
	Most time.Duration
	// Poll looks for changes by walking, also where there are events.
	Poll bool
	// Held returns the paths of the files that the reader holds: those that a walk misses
	// are reported. Nil stands for the files of the walk before.
	Held func() []string
	// PollEvery is the least time between two walks; 0 is 500 ms. At most a
	// twentieth of the time is spent on walking.
	PollEvery time.Duration
	// MaxFolders is the number of folders beyond which they are walked and not
	// watched. 0 is what the operating system bears: see maxFolders.
	MaxFolders int
	// Logger receives what went wrong; nil is silent.
	Logger *slog.Logger
}

const (
	defaultQuiet = 100 * time.Millisecond
	defaultMost  = 500 * time.Millisecond
	defaultPoll  = 500 * time.Millisecond
	// pollShare is the time between two walks in times of one.
	pollShare = 20
	// maxPaths is how many changed paths are kept apart. Beyond it everything is
	// looked at, which is then hardly more work.
	maxPaths = 10_000
	// firstRetry and lastRetry bound the wait before a batch that was not taken
	// is handed over again.
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Batch is a number of changes that were noticed together.
type Batch struct {
	// All is set when anything may have changed: events were lost, or the rules
	// of what to ignore are others now. Paths is nil then.
	All bool
	// Paths are workspace paths of files and folders, sorted. A folder stands
	// for everything that is, or was, below it. None need exist.
	Paths []string
	// First is when the first of the changes was noticed.
	First time.Time
}

// Watcher watches the roots of a workspace from Open to Close.
type Watcher struct {
	tree    *walk.Tree
	options Options
	wants   func(name string) bool
	source  source
	reason  string // why the source is not that of events
	retry   time.Duration
}

// source reports changes.
type source interface {
	// run reports changes until ctx ends. An error means that the source is of
	// no more use, and that changes may have been missed.
	run(ctx context.Context, tell chan<- change) error
	close() error
}

// change is one thing that happened. The zero path of a change that is not all
// means nothing.
type change struct {
	all  bool
	path string
}

// Open begins to watch the files of tree, which stays the caller's to close
// after the Watcher. Whatever changes once Open has returned is reported by Run.
func Open(ctx context.Context, tree *walk.Tree, o *Options) (*Watcher, error) {
	w := &Watcher{tree: tree, retry: firstRetry}
	if o != nil {
		w.options = *o
	}
	if w.options.Most <= 0 {
		w.options.Most = defaultMost
	}
	if w.options.Quiet <= 0 {
		w.options.Quiet = defaultQuiet
	}
	w.options.Quiet = min(w.options.Quiet, w.options.Most)
	if w.options.PollEvery <= 0 {
		w.options.PollEvery = defaultPoll
	}
	if w.options.MaxFolders <= 0 {
		w.options.MaxFolders = maxFolders
	}
	if w.options.Logger == nil {
		w.options.Logger = slog.New(slog.DiscardHandler)
	}
	w.wants = w.options.Walk.Wants()
	w.reason = "asked for"
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
		w.options.Logger.Warn("looking for changes by walking the folder again and again", "reason", err)
	}
	var err error
	w.source, err = openPoller(ctx, w)
	return w, err
}

// Polling returns why changes are looked for by walking; "" means that the
// operating system reports them. It holds until Run falls back to walking.
func (w *Watcher) Polling() string { return w.reason }

// Close stops watching. Run must have returned.
func (w *Watcher) Close() error { return w.source.close() }

// Run hands changes over, beginning with a Batch of All if all is set, until ctx
// ends, which is its only error but for a
// workspace that cannot be walked any more. handle is called by one goroutine at
// a time; while it runs, further changes gather. A batch that handle refuses
// with an error comes again later, with whatever has been added to it.
func (w *Watcher) Run(ctx context.Context, all bool, handle func(context.Context, Batch) error) error {
	changes := make(chan change, 256)
	if all {
		changes <- change{all: true}
	}
	for {
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- w.source.run(running, changes) }()
		err := w.collect(running, changes, ended, handle)
		stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// The source gave up. A poller does only when there is nothing to walk.
		if _, polls := w.source.(*poller); polls {
			return err
		}
		w.options.Logger.Warn("looking for changes by walking the folder again and again", "reason", err)
		w.reason = err.Error()
		if err := w.source.close(); err != nil {
			w.options.Logger.Warn("closing the source of events", "error", err)
		}
		next, err := openPoller(ctx, w)
		if err != nil {
			w.source = closed{}
			return err
		}
		w.source = next
		changes = make(chan change, 256)
		changes <- change{all: true} // what was missed in between
	}
}

// closed is a source after its end.
type closed struct{}

func (closed) run(context.Context, chan<- change) error { return errors.New("closed") }
func (closed) close() error                             { return nil }

// collect gathers changes and hands them over until the source has ended. It
// returns when no handle runs any more.
func (w *Watcher) collect(ctx context.Context, changes <-chan change, ended <-chan error, handle func(context.Context, Batch) error) error {
	p := pending{most: maxPaths}
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	var (
		handled chan error // of the handle that runs, else nil
		sent    Batch
		retry   = w.retry
		due     bool
	)
	for {
		if due && handled == nil && !p.empty() {
			sent, due = p.take(), false
			handled = make(chan error, 1)
			go func(b Batch, handled chan<- error) { handled <- handle(ctx, b) }(sent, handled)
		}
		select {
		case c := <-changes:
			now := time.Now()
			fresh := p.empty()
			if !p.add(c, now) {
				break
			}
			if fresh {
				due = false
			}
			timer.Reset(min(w.options.Quiet, time.Until(p.first.Add(w.options.Most))))
		case <-timer.C:
			due = true
		case err := <-handled:
			handled = nil
			if err == nil {
				retry = w.retry
				break
			}
			if ctx.Err() == nil {
				w.options.Logger.Warn("taking in changed files", "error", err, "again_in", retry)
			}
			p.merge(sent)
			due = false
			timer.Reset(retry)
			retry = min(2*retry, lastRetry)
		case err := <-ended:
			if handled != nil {
				<-handled
			}
			return fmt.Errorf("watching: %w", err)
		}
	}
}

// pending are changes that have not been handed over.
type pending struct {
	most  int // paths
	all   bool
	paths map[string]bool
	first time.Time
}

func (p *pending) empty() bool { return !p.all && len(p.paths) == 0 }

// add takes in a change and reports whether it was one.
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
		if len(p.paths) > p.most {
			p.all, p.paths = true, nil
		}
	}
	return true
}

// take empties p.
func (p *pending) take() Batch {
	b := Batch{All: p.all, Paths: slices.Sorted(maps.Keys(p.paths)), First: p.first}
	p.all, p.paths = false, nil
	return b
}

// merge puts back what was taken out.
func (p *pending) merge(b Batch) {
	if b.All {
		p.add(change{all: true}, b.First)
	}
	for _, path := range b.Paths {
		p.add(change{path: path}, b.First)
	}
	p.first = b.First
}
