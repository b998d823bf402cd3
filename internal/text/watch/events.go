package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"cairn/internal/text/walk"
)

// events is a source that uses the events of the operating system. It watches each folder
// that the walk enters by itself, so that the others, which are often the largest, cost
// nothing.
type events struct {
	w       *Watcher
	notify  *fsnotify.Watcher
	probe   *probe            // nil if the system does not report changes in their order
	watched map[string]string // places in the file system by workspace path; only the goroutine of run uses it
	failed  int               // number of consecutive errors of unknown cause
}

// maxErrors is the number of consecutive errors after which a poller replaces events.
const maxErrors = 3

// errTooMany is wrapped by errors about too many folders.
var errTooMany = errors.New("more folders than can be watched")

func openEvents(ctx context.Context, w *Watcher) (_ *events, err error) {
	for _, r := range w.tree.Roots() {
		if kind := remote(r.Dir); kind != "" {
			// Changes by other machines cause no events here.
			return nil, fmt.Errorf("%s is on a file system of type %s, which does not report changes", r.Dir, kind)
		}
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	e := &events{w: w, notify: notify, watched: map[string]string{}}
	if err := e.watch(ctx, nil); err != nil {
		notify.Close()
		return nil, err
	}
	if e.probe, err = newProbe(notify); err != nil {
		w.options.Logger.Debug("watching without a probe", "error", err)
	}
	return e, nil
}

func (e *events) close() error {
	e.probe.end()
	return errors.Join(e.notify.Close(), e.probe.close())
}

// watch starts to watch the folders at the given paths and below them, or all folders if
// paths is nil. An error means that events cannot be used.
func (e *events) watch(ctx context.Context, paths []string) error {
	return e.w.tree.Folders(ctx, e.w.options.Walk, paths, e.add)
}

// add watches one folder. It skips a folder that was removed or cannot be read: an event of
// its parent reports when that changes.
func (e *events) add(path, dir string) error {
	if _, ok := e.watched[path]; ok {
		return nil
	}
	if len(e.watched) >= e.w.options.MaxFolders {
		return fmt.Errorf("%w: %d", errTooMany, e.w.options.MaxFolders)
	}
	err := e.notify.Add(dir)
	switch {
	case err == nil:
		e.watched[path] = dir
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR):
	case exhausted(err):
		return fmt.Errorf("%w: the system's limit is reached at %d (%v); on Linux, see fs.inotify.max_user_watches", errTooMany, len(e.watched), err)
	default:
		return fmt.Errorf("watching %s: %w", dir, err)
	}
	return nil
}

// forget stops watching the folder at path and those below it, and reports whether it was
// watched. The system continues to watch a folder that was moved, and would report its
// events under its old name.
func (e *events) forget(path string) (known bool) {
	if _, known = e.watched[path]; !known {
		return false // no folder below it is watched either
	}
	for p, dir := range e.watched {
		if walk.Under(p, path) {
			delete(e.watched, p)
			// An error means that the system no longer watches it.
			_ = e.notify.Remove(dir)
		}
	}
	return true
}

func (e *events) run(ctx context.Context, tell func(change)) error {
	defer e.probe.end()
	for {
		var c change
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ev, ok := <-e.notify.Events:
			if !ok {
				return errors.New("the source of events was closed")
			}
			e.failed = 0
			if e.probe.takes(ev) {
				continue
			}
			c, err = e.event(ctx, ev)
		case failure, ok := <-e.notify.Errors:
			if !ok {
				return errors.New("the source of events was closed")
			}
			c, err = e.failure(ctx, failure)
		}
		if err != nil {
			return err
		}
		tell(c)
	}
}

// failure handles an error of fsnotify.
func (e *events) failure(ctx context.Context, err error) (change, error) {
	if errors.Is(err, fsnotify.ErrEventOverflow) {
		e.w.options.Logger.Info("the system dropped events; looking at all files")
		return e.resync(ctx)
	}
	if e.failed++; e.failed >= maxErrors || exhausted(err) {
		return change{}, err
	}
	e.w.options.Logger.Warn("watching", "error", err)
	return e.resync(ctx)
}

// resync watches exactly the folders that the walk enters now, and reports that any file
// may have changed.
func (e *events) resync(ctx context.Context) (change, error) {
	now := map[string]bool{}
	if err := e.w.tree.Folders(ctx, e.w.options.Walk, nil, func(path, dir string) error {
		now[path] = true
		return e.add(path, dir)
	}); err != nil {
		return change{}, err
	}
	for path, dir := range e.watched {
		if !now[path] {
			delete(e.watched, path)
			_ = e.notify.Remove(dir) // as in forget
		}
	}
	return change{all: true}, nil
}

// event returns the change that an event reports; the zero change means none.
func (e *events) event(ctx context.Context, ev fsnotify.Event) (change, error) {
	path, ok := e.path(ev.Name)
	if !ok {
		return change{}, nil
	}
	removed := ev.Has(fsnotify.Remove) || ev.Has(fsnotify.Rename)
	if path == "" || slices.ContainsFunc(e.w.tree.Roots(), func(r walk.Root) bool { return r.Name == path }) {
		return change{all: removed}, nil
	}
	if removed && e.forget(path) {
		return change{path: path}, nil
	}
	if ev.Has(fsnotify.Create) || ev.Has(fsnotify.Chmod) {
		if info, err := e.w.tree.Stat(path); err == nil && info.IsDir() {
			return e.folder(ctx, path, ev.Has(fsnotify.Create))
		}
	}
	switch {
	case walk.IsIgnoreFile(path):
		return e.resync(ctx)
	case e.w.wants(path):
		return change{path: path}, nil
	}
	return change{}, nil
}

// folder watches a folder that is new or whose permissions have changed. The reader of the
// change finds files that were created before the folder was watched.
func (e *events) folder(ctx context.Context, path string, created bool) (change, error) {
	if created {
		e.forget(path)
	}
	before := len(e.watched)
	if err := e.watch(ctx, []string{path}); err != nil {
		return change{}, err
	}
	if len(e.watched) == before && created {
		return change{}, nil // the walk does not enter it
	}
	return change{path: path}, nil
}

// path returns the workspace path of a place in the file system, "" for the main root.
func (e *events) path(name string) (string, bool) {
	path, ok := walk.PathIn(e.w.tree.Roots(), name)
	if path == "." {
		return "", true
	}
	clean, err := walk.Clean(path)
	return clean, ok && err == nil && clean == path
}

// exhausted reports whether the system has no more watches for this process, or none at
// all.
func exhausted(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOSYS)
}
