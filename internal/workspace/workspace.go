package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"cairn/internal/mirror"
	"cairn/internal/owner"
	"cairn/internal/usage"
	"cairn/models"
	"cairn/retriever"
)

// Access is what a process wants to do with a folder.
type Access int

const (
	// Reading opens what is there and creates nothing.
	Reading Access = iota
	// Owning opens the folder for writing, or asks the process that has it open.
	Owning
)

// Options are the knobs of Open.
type Options struct {
	// Model opens the embedding model. It is called at most once, when the
	// model is first needed, and not from several goroutines.
	Model func() (models.Embedder, error)
	// Description is the model's, known before it is opened.
	Description models.Description
	// ModelChosen is set when the user named the model: an owner that uses
	// another one is then an error.
	ModelChosen bool
	// Command is how this process introduces itself, such as "cairn index".
	Command string
	// Background starts a run of the indexer whenever this process becomes the owner.
	Background bool
	// Watch keeps the index up to date with the files whenever this process is
	// the owner and watcher.enabled is set.
	Watch bool
	// Poll looks for changes by walking, also where the system tells of them.
	Poll bool
	// Warm loads the model while the stores open, instead of at its first use.
	Warm bool
	// Serves makes Open succeed where an index is missing and cannot be made, in a
	// process that has more to offer or outlasts that: every use says why.
	Serves bool
	// Rebuild throws an index away that cannot be opened as it is.
	Rebuild bool
	// Store, when not nil, is searched instead of the folder by a process that
	// only reads, and kept up to date with the folder's index by its owner.
	Store *mirror.Store
	// Stateless, with a Store, answers from that alone and never writes, whatever is
	// in the folder.
	Stateless bool
	// Usage is what is used together, for queries that say what is in use; nil
	// opens that of the folder when it is first needed. It stays the caller's.
	Usage *usage.Store
	// Notice is told, in a line for people, of an index that this process found
	// unusable and makes anew; nil tells Logger.
	Notice func(line string)
	// Logger receives what happens in the background; nil is silent.
	Logger *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// storeAddress is the address of the Store, "" for none.
func (o *Options) storeAddress() string {
	if o.Store == nil {
		return ""
	}
	return o.Store.String()
}

// lockWait is how long a process waits for a lock that is neither given up nor
// served: an owner that opens or closes its stores. A caller is told within two seconds.
const lockWait = 1500 * time.Millisecond

// Workspace is one folder, opened. It works with the folder's own stores when
// this process owns them or nobody does, and asks the owner otherwise; when an
// owner goes away it opens anew. It is safe for concurrent use.
type Workspace struct {
	selection Selection
	config    Config
	options   Options
	dir       string // of the index

	mu      sync.Mutex
	access  Access
	current engine // nil after a close or when the owner went away
	closed  bool
	silent  bool // the owner went away by not answering
	// refused is when and why a process that does not answer kept the folder: who
	// waited meanwhile, or comes right after, need not ask again.
	refused   *LockError
	refusedAt time.Time
	// unwritable is why an owner had to become a reader.
	unwritable error
	// tending is what tend runs in; stopTending is nil before.
	tending     sync.WaitGroup
	stopTending context.CancelFunc

	usage sharedUsage
}

// Open opens the folder of sel. With Owning it creates the index's folder.
// The stores are opened at once, the model is not.
func Open(ctx context.Context, sel Selection, cfg Config, access Access, o Options) (*Workspace, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Workspace{selection: sel, config: cfg, options: o, access: access, dir: owner.IndexDir(sel.Root)}
	if _, err := w.engine(ctx); err != nil {
		if _, unwritable := errors.AsType[*UnwritableError](err); !unwritable || !o.Serves {
			return nil, err
		}
		o.Logger.Warn("there is no index to answer from", "reason", err)
	}
	if access == Owning {
		w.startTending()
	}
	return w, nil
}

// Search answers a query.
func (w *Workspace) Search(ctx context.Context, q retriever.Query) (*retriever.Answer, error) {
	return ask(ctx, w, func(e engine) (*retriever.Answer, error) { return e.Search(ctx, q) })
}

// Explain answers a query and tells the whole way of it.
func (w *Workspace) Explain(ctx context.Context, r ExplainRequest) (*retriever.Trace, error) {
	return ask(ctx, w, func(e engine) (*retriever.Trace, error) { return e.Explain(ctx, r) })
}

// Read returns a document, a section or lines of one.
func (w *Workspace) Read(ctx context.Context, r retriever.ReadRequest) (*retriever.Reading, error) {
	return ask(ctx, w, func(e engine) (*retriever.Reading, error) { return e.Read(ctx, r) })
}

// ReadAll returns several places at once.
func (w *Workspace) ReadAll(ctx context.Context, r retriever.ReadRequest) (*retriever.Readings, error) {
	return ask(ctx, w, func(e engine) (*retriever.Readings, error) { return e.ReadAll(ctx, r) })
}

// Index starts a run of the indexer and waits for its end. The run goes on
// when ctx ends first, until it is done or the workspace is closed. progress
// may be nil; it is called from the caller's goroutine. A run that another
// caller started is a *LockError, unless r.Join.
func (w *Workspace) Index(ctx context.Context, r IndexRequest, progress func(Progress)) (*IndexReport, error) {
	report, err := ask(ctx, w, func(e engine) (*IndexReport, error) { return e.Index(ctx, r, progress) })
	if !errors.Is(err, errReadOnly) {
		return report, err
	}
	if err := w.own(ctx); err != nil {
		return nil, err
	}
	report, err = ask(ctx, w, func(e engine) (*IndexReport, error) { return e.Index(ctx, r, progress) })
	if errors.Is(err, errReadOnly) {
		return nil, w.whyUnwritable()
	}
	return report, err
}

// Status tells the state of the workspace.
func (w *Workspace) Status(ctx context.Context) (*Status, error) {
	s, err := ask(ctx, w, func(e engine) (*Status, error) { return e.Status(ctx) })
	if _, unwritable := errors.AsType[*UnwritableError](err); unwritable && w.options.Serves {
		s, err = w.status(retriever.IndexState{State: "missing"}), nil
		s.Problem = w.whyUnwritable().Error()
	}
	return s, err
}

func (w *Workspace) whyUnwritable() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unwritable
}

// Config is the folder's configuration.
func (w *Workspace) Config() Config { return w.config }

// Close ends what goes on in the background and closes the stores. What was
// not finished is resumed by the next run.
func (w *Workspace) Close() error {
	w.mu.Lock()
	w.closed = true
	if w.stopTending != nil {
		w.stopTending()
	}
	w.mu.Unlock()
	w.tending.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == nil {
		return w.usage.close()
	}
	e := w.current
	w.current = nil
	return errors.Join(e.close(), w.usage.close())
}

// attempts bounds how often a request moves on to a new owner. Owners last
// seconds at least, so a second move within one request is rare.
const attempts = 4

// ask runs fn on the engine, and once more on a new one when the owner went away.
func ask[T any](ctx context.Context, w *Workspace, fn func(engine) (*T, error)) (*T, error) {
	for n := 1; ; n++ {
		e, err := w.engine(ctx)
		if err != nil {
			return nil, err
		}
		v, err := fn(e)
		if !errors.Is(err, errGone) || n == attempts {
			return v, err
		}
		w.drop(e)
	}
}

// engine returns the open engine, and opens one if there is none.
func (w *Workspace) engine(ctx context.Context) (engine, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errors.New("the workspace is closed")
	}
	if w.current == nil {
		if w.refused != nil && time.Since(w.refusedAt) < helloLimit {
			return nil, w.refused
		}
		e, err := w.open(ctx)
		w.silent = false
		if w.refused, _ = errors.AsType[*LockError](err); w.refused != nil {
			w.refusedAt = time.Now()
		}
		if err != nil {
			return nil, err
		}
		w.current = e
	}
	return w.current, nil
}

// drop forgets e, unless another goroutine has replaced it already.
func (w *Workspace) drop(e engine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == e {
		w.current = nil
		if r, ok := e.(*remote); ok {
			w.silent = r.silent.Load()
		}
		e.close()
	}
}

// own gives up reading for owning.
func (w *Workspace) own(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.access == Owning || w.closed {
		return nil
	}
	w.access = Owning
	w.startTending()
	if w.current == nil {
		return nil
	}
	e := w.current
	w.current = nil
	return e.close()
}

// open finds the way into the folder. Where nothing can be written, an index
// that is there is opened for reading. w.mu is held.
func (w *Workspace) open(ctx context.Context) (engine, error) {
	e, err := w.openAs(ctx, w.access)
	if w.access != Owning || !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return e, err
	}
	ok, indexErr := w.indexed()
	w.unwritable = &UnwritableError{Dir: w.dir, Err: err, Indexed: ok && indexErr == nil}
	if !ok || indexErr != nil {
		return nil, w.unwritable
	}
	w.options.Logger.Warn("answering from the index as it is", "reason", w.unwritable)
	return w.openAs(ctx, Reading)
}

// UnwritableError says that a folder's index cannot be made or changed, since
// the file system or its permissions do not let this process write.
type UnwritableError struct {
	Dir     string // of the index
	Err     error
	Indexed bool // there is one that can be searched
}

func (e *UnwritableError) Error() string {
	if !e.Indexed {
		return fmt.Sprintf("cannot write the index in %s, and there is none to search: %v; make the folder writable, or copy it and choose the copy with -C", e.Dir, e.Err)
	}
	return fmt.Sprintf("cannot write the index in %s, so it can be searched at most: %v", e.Dir, e.Err)
}

func (e *UnwritableError) Unwrap() error { return e.Err }

// openAs opens the folder's owner's socket, else its stores. w.mu is held.
func (w *Workspace) openAs(ctx context.Context, access Access) (engine, error) {
	if w.options.Store != nil && (w.options.Stateless || access == Reading) {
		return openServed(w)
	}
	if err := w.there(); err != nil {
		return nil, err
	}
	if access == Owning {
		if err := w.prepare(); err != nil {
			return nil, err
		}
	} else if ok, err := w.indexed(); err != nil {
		return nil, err
	} else if !ok {
		return missing{w}, nil
	}
	lock := newFileLock(w.dir)
	gated := false
	defer func() {
		if gated {
			lock.openGate()
		}
	}()
	var opened engine
	wait := lockWait
	if w.silent {
		wait = 0 // the owner has been waited for
	}
	ok, err := poll(ctx, wait, func() (bool, error) {
		if w.silent {
			// Unless it has ended just now, it is not asked again.
		} else if r, err := dial(ctx, w, socketPath(w.dir, os.TempDir())); err == nil {
			opened = r
			return true, w.accept(r)
		} else if !errors.Is(err, errGone) && !errors.Is(err, context.DeadlineExceeded) {
			return false, err
		}
		if access == Reading {
			ok, err := lock.tryRead()
			if !ok || err != nil {
				return false, err
			}
			opened, err = openReader(w, lock)
			return err == nil, err
		}
		if !gated {
			ok, err := lock.closeGate()
			if gated = ok; !ok || err != nil {
				return false, err
			}
		}
		me := Holder{PID: os.Getpid(), Command: w.options.Command, StartedAt: w.options.Now().UTC().Truncate(time.Second)}
		ok, err := lock.tryOwn(me)
		if !ok || err != nil {
			return false, err
		}
		opened, err = openOwner(w, lock, me)
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	if !ok {
		if gated {
			gated = false
			lock.openGate()
		}
		return openBeside(w, access, lock)
	}
	return opened, nil
}

// accept refuses an owner with another model or store than the user asked for.
func (w *Workspace) accept(r *remote) error {
	if s := w.options.storeAddress(); s != "" && s != r.owner.Store {
		err := fmt.Errorf("process %d (%s) owns this folder and does not copy its index to %s; stop it first, or start it with --store", r.owner.Holder.PID, r.owner.Holder.Command, s)
		r.close()
		return err
	}
	if w.options.ModelChosen && r.owner.Model != w.options.Description.ID {
		err := fmt.Errorf("process %d (%s) owns this folder and uses model %s, not %s; stop it first", r.owner.Holder.PID, r.owner.Holder.Command, r.owner.Model, w.options.Description.ID)
		r.close()
		return err
	}
	return nil
}

// indexed reports whether there is an index, which an empty file is not. One
// that this user may not read is an error.
func (w *Workspace) indexed() (bool, error) {
	f, err := os.Open(filepath.Join(w.dir, documentsFile))
	switch {
	case err == nil:
		info, err := f.Stat()
		return err == nil && info.Size() > 0, errors.Join(err, f.Close())
	case errors.Is(err, fs.ErrPermission):
		return false, fmt.Errorf("cannot read the index in %s: permission denied; it is another user's", w.dir)
	}
	return false, nil
}

// prepare makes the index's folder, and keeps it out of version control.
func (w *Workspace) prepare() error {
	if err := owner.MakeIndexDir(w.selection.Root); err != nil {
		return err
	}
	return owner.PrivateDir(w.dir)
}

// status fills in what every engine knows.
func (w *Workspace) status(s retriever.IndexState) *Status {
	st := &Status{IndexState: s, Model: w.options.Description.ID, Workspace: w.selection, Skipped: map[string]int{}}
	st.Store = w.options.storeAddress()
	for _, warning := range w.config.Warnings {
		st.Warnings = append(st.Warnings, warning.String())
	}
	return st
}
