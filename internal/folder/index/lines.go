package index

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"

	"cairn/internal/base/health"
	"cairn/internal/base/owner"
	"cairn/internal/folder/scan"
	"cairn/internal/store/ngram"
	"cairn/internal/text/walk"
	"cairn/internal/text/watch"
)

// ngramFile holds the n-grams of the files. It is made from the files alone, and does not
// depend on the other parts of the index.
const ngramFile = "ngrams"

// lines chooses the files that a scan for lines reads.
type lines struct {
	x     *Index
	grams *ngram.Index

	updating sync.Mutex  // held during update
	renewed  atomic.Bool // see renew
}

func newLines(x *Index) *lines {
	o := x.options
	path := "" // another process may have the file open
	if o.Dir != "" && o.Remote == nil && o.Holder != nil {
		path = filepath.Join(o.Dir, ngramFile)
	}
	return &lines{x: x, grams: ngram.Open(path, &ngram.Options{
		Rules: scan.Rules(o.Config.Masks()), Logger: o.Logger,
		Held: func() error {
			if o.Held != nil && !o.Held() {
				return owner.ErrEnded
			}
			return nil
		},
	})}
}

// update records the files at and below the changed paths, nil for all. The n-grams are
// complete after a call for all files of a watched folder, until an error.
func (l *lines) update(ctx context.Context, changed []string) {
	if l.x.options.Holder == nil {
		return
	}
	l.updating.Lock()
	defer l.updating.Unlock()
	_, watched := l.x.unhandled()
	tree, err := walk.Open(l.x.options.Selection.Roots()...)
	if err == nil {
		err = scan.Update(ctx, tree, l.x.options.Config.Walk(), l.x.options.Config.Masks(), l.grams, changed)
		err = errors.Join(err, tree.Close())
	}
	switch {
	case err == nil && changed == nil && watched:
		l.grams.SetComplete(true)
		l.renewed.Store(false)
	case err != nil:
		l.grams.SetComplete(false)
		if ctx.Err() == nil && !errors.Is(err, owner.ErrEnded) {
			l.x.options.Logger.Warn("recording n-grams", "error", err)
		}
	}
}

// renew records all files in the background, because records of a watched folder were lost.
// It does not try again before that has succeeded.
func (l *lines) renew() {
	l.x.runs.Lock()
	defer l.x.runs.Unlock()
	if !l.x.closed && l.renewed.CompareAndSwap(false, true) {
		l.x.goroutines.Go(func() { l.update(l.x.life, nil) })
	}
}

// Candidates returns the files that a scan has to read. If the owner watches the folder, its
// n-grams and the unhandled changes suffice; otherwise Candidates walks the folder.
func (x *Index) Candidates(ctx context.Context, r scan.Request) (_ *scan.Candidates, err error) {
	tree, err := walk.Open(x.options.Selection.Roots()...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	o := x.options.Config.Walk()
	if b, ok := x.unhandled(); ok && !b.All {
		c, ok, err := scan.SelectWatched(ctx, tree, o, x.lines.grams, b.Paths, r)
		if ok || err != nil {
			return c, err
		}
		x.lines.renew()
	}
	return scan.Select(ctx, tree, o, x.lines.grams, r)
}

// unhandled returns the changes that no completed call of watcher.take has processed. ok is
// false if they are not known, or the folder is not watched.
func (x *Index) unhandled() (b watch.Batch, ok bool) {
	x.runs.Lock()
	w := x.watcher
	x.runs.Unlock()
	if w == nil {
		return b, false
	}
	events := w.events.Load()
	if events == nil {
		return b, false
	}
	return events.Unhandled()
}

// verify checks the n-grams.
func (l *lines) verify(context.Context) (f health.File, err error) {
	return l.grams.Verify()
}

// clear removes all records.
func (l *lines) clear() {
	l.updating.Lock() // an update would take the files that it does not read for recorded
	defer l.updating.Unlock()
	l.grams.Clear()
}

// repair records all files again.
func (l *lines) repair(ctx context.Context, _ health.File) (string, error) {
	l.clear()
	l.update(ctx, nil)
	return "rebuilt", ctx.Err()
}
