package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"cairn/internal/checksum"
)

// sharedTimeout is how long a transaction waits for those of other processes. A large
// import takes seconds.
const sharedTimeout = 20 * time.Second

const (
	// linger is how long a file that was written stays open for the next transaction.
	linger = 20 * time.Millisecond
	// maxOpen is how long it stays open while transactions follow each other: another
	// process that waits then has its turn.
	maxOpen = 100 * time.Millisecond
)

// Shared is a file that many processes read and write: each has it open only while
// transactions follow each other. It suits small data that is rarely asked for; a
// lonely transaction costs some 0.1 ms more. It is safe for concurrent use.
type Shared struct {
	path      string
	prepare   func() error    // creates the folder
	recovered func(*Recovery) // hears of a recovery

	checked atomic.Int64 // when this process last read the whole file, Unix nanoseconds

	mu      sync.Mutex
	freed   *sync.Cond // signals that opened has become nil
	opened  *handle
	changed bool // by this process
	closed  bool
}

// handle is the open file. Shared.mu guards it.
type handle struct {
	db      *DB
	users   int  // transactions that run
	retired bool // no further transaction may begin
	since   time.Time
	closer  *time.Timer // closes it when it is no longer used; nil while it is used
}

// NewShared returns the file at path, which the first Update creates in the folder
// that prepare makes. A damaged file is recovered, see Recover: recovered, unless nil,
// is called with the outcome. A transaction that meets the damage returns it.
func NewShared(path string, prepare func() error, recovered func(*Recovery)) *Shared {
	if recovered == nil {
		recovered = func(*Recovery) {}
	}
	f := &Shared{path: path, prepare: prepare, recovered: recovered}
	f.freed = sync.NewCond(&f.mu)
	return f
}

// View calls fn as DB.View does, unless there is no file yet.
func (f *Shared) View(fn func(*Tx) error) error {
	return f.with(false, func(db *DB) error { return db.View(fn) })
}

// Verify is DB.Verify. A file that does not exist has no problems.
func (f *Shared) Verify() (found checksum.File, err error) {
	err = f.with(false, func(db *DB) error {
		found, err = db.Verify()
		return err
	})
	return found, err
}

// Update calls fn as DB.Update does.
func (f *Shared) Update(fn func(*Tx) error) error {
	return f.with(true, func(db *DB) error {
		err := db.Update(fn)
		if err == nil {
			f.mu.Lock()
			f.changed = true
			f.mu.Unlock()
		}
		return err
	})
}

// with calls fn with the open file; not for reading where there is none. It recovers a
// damaged one; what fn has seen of it may be incomplete, so that the caller gets the
// error.
func (f *Shared) with(write bool, fn func(*DB) error) error {
	h, err := f.acquire(write)
	if h != nil {
		err = f.use(h, fn)
	}
	if _, corrupt := errors.AsType[*CorruptError](err); !corrupt {
		return err
	}
	if failed := f.recover(); failed != nil {
		return errors.Join(err, failed)
	}
	if h != nil {
		return fmt.Errorf("%w; it has been recovered, so try again", err)
	}
	if h, err = f.acquire(write); h == nil {
		return err
	}
	return f.use(h, fn)
}

// use calls fn with a handle and releases it.
func (f *Shared) use(h *handle, fn func(*DB) error) (err error) {
	ended := false
	defer func() { err = errors.Join(err, f.release(h, !ended || err != nil)) }()
	err = fn(h.db)
	ended = true
	return err
}

// acquire returns the open file, which it opens if need be; nil for reading where
// there is no file.
func (f *Shared) acquire(write bool) (*handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for h := f.opened; h != nil && !f.closed; h = f.opened {
		if h.serves(write, f.path) {
			if h.closer != nil {
				h.closer.Stop()
				h.closer = nil
			}
			h.users++
			return h, nil
		}
		if err := f.retire(h); err != nil {
			return nil, err
		}
	}
	if f.closed {
		return nil, ErrClosed
	}
	// An empty file is one that another process is about to fill, or has lost its records.
	info, err := os.Stat(f.path)
	if !write && (errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 && !emptied(f.path)) {
		return nil, nil
	}
	if write {
		if err := f.prepare(); err != nil {
			return nil, err
		}
	}
	db, err := f.open(!write)
	if err != nil {
		return nil, err
	}
	f.opened = &handle{db: db, users: 1, since: time.Now()}
	return f.opened, nil
}

// serves reports whether another transaction may begin: not after the file at path was
// replaced.
func (h *handle) serves(write bool, path string) bool {
	if h.retired || write && h.db.options.ReadOnly || time.Since(h.since) >= maxOpen {
		return false
	}
	own, err := h.db.file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(own, now)
}

// retire closes a handle when its last transaction has ended.
func (f *Shared) retire(h *handle) error {
	h.retired = true
	if h.users == 0 {
		return f.free(h)
	}
	for f.opened == h {
		f.freed.Wait()
	}
	return nil
}

// release ends the use of a handle. The file stays open a moment for the next
// transaction if this process writes it; not after a failure.
func (f *Shared) release(h *handle, failed bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	h.users--
	h.retired = h.retired || failed || f.closed || h.db.options.ReadOnly
	switch {
	case h.users > 0:
		return nil
	case h.retired || time.Since(h.since) >= maxOpen:
		return f.free(h)
	}
	var closer *time.Timer
	closer = time.AfterFunc(linger, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if h.closer == closer {
			_ = f.free(h) // its transactions were committed
		}
	})
	h.closer = closer
	return nil
}

// free closes a handle without users. f.mu is held.
func (f *Shared) free(h *handle) error {
	if h.closer != nil {
		h.closer.Stop()
		h.closer = nil
	}
	f.opened = nil
	f.freed.Broadcast()
	if err := h.db.Close(); err != nil {
		return fmt.Errorf("closing after a transaction: %w", err)
	}
	return nil
}

// open opens the file when it is this process's turn, and checks it now and then.
func (f *Shared) open(readOnly bool) (*DB, error) {
	o := &Options{ReadOnly: readOnly, Timeout: sharedTimeout, Snapshots: true, Convert: true, shared: true}
	leave, err := f.turn(o)
	if err != nil {
		return nil, err
	}
	db, err := Open(f.path, o)
	leave()
	if err != nil {
		return nil, err
	}
	now := time.Now().UnixNano()
	if now-f.checked.Load() <= int64(checkEvery) {
		return db, nil
	}
	found, err := db.check()
	if err == nil && len(found.Problems) > 0 {
		err = &CorruptError{Path: f.path, Reason: found.Problems[0]}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	f.checked.Store(now)
	return db, nil
}

// checkEvery is how often a process reads the whole file to find missing records, which a
// transaction that looks for a few does not notice.
const checkEvery = 10 * time.Minute

// recover replaces the file while no process has it open: the turn keeps others from
// opening it, and the lock waits for those that have.
func (f *Shared) recover() error {
	f.mu.Lock()
	h := f.opened
	if h != nil {
		_ = f.retire(h) // it is damaged
	}
	f.mu.Unlock()
	leave, err := f.turn(&Options{Timeout: sharedTimeout})
	if err != nil {
		return err
	}
	defer leave()
	lock := flock.New(f.path)
	defer lock.Close()
	ctx, cancel := context.WithTimeout(context.Background(), sharedTimeout)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, time.Millisecond); err != nil {
		return fmt.Errorf("waiting for %s: %w", f.path, err)
	}
	r, err := Recover(f.path)
	if err == nil && r != nil {
		f.recovered(r)
	}
	return err
}

// Repair recovers the file if it is damaged, and removes damaged snapshots.
func (f *Shared) Repair() error {
	if err := f.recover(); err != nil {
		return err
	}
	f.mu.Lock()
	f.changed = true // so that there is a new snapshot
	f.mu.Unlock()
	return RemoveDamagedSnapshots(f.path)
}

// turn waits until this process may open the file. A waiting writer holds the turn,
// so that readers that come after it do not overtake it without end; leave gives the
// turn back. A reader that cannot create the file of the turn opens without one.
func (f *Shared) turn(o *Options) (leave func(), err error) {
	lock := flock.New(f.path + ".turn")
	ctx, cancel := context.WithTimeout(context.Background(), o.Timeout)
	defer cancel()
	try := lock.TryLockContext
	if o.ReadOnly {
		try = lock.TryRLockContext
	}
	if _, err = try(ctx, time.Millisecond); err != nil {
		_ = lock.Close() // it may hold the file open without the lock
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &LockedError{Path: f.path, Waited: o.Timeout}
	case err != nil && o.ReadOnly:
		return func() {}, nil
	case err != nil:
		return nil, fmt.Errorf("opening %s: %w", f.path, err)
	}
	return func() { _ = lock.Close() }, nil // the end of the process gives it back as well
}

// Close makes further transactions fail with ErrClosed, and a snapshot of what this
// process has changed.
func (f *Shared) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	if h := f.opened; h != nil {
		if err := f.retire(h); err != nil {
			return err
		}
	}
	if !f.changed {
		return nil
	}
	db, err := f.open(true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	db.changed.Store(true)
	db.snapshotIfDue(0)
	return db.Close()
}
