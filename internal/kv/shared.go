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

// Shared is a file that many processes read and write: each has it open only during a
// transaction. It suits small data that is rarely asked for; every transaction costs
// some 0.1 ms more. It is safe for concurrent use.
type Shared struct {
	path      string
	prepare   func() error    // creates the folder
	recovered func(*Recovery) // hears of a recovery

	checked atomic.Int64 // when this process last read the whole file, Unix nanoseconds

	mu      sync.RWMutex // held for writing during an Update
	changed bool         // by this process
	closed  bool
}

// NewShared returns the file at path, which the first Update creates in the folder
// that prepare makes. A damaged file is recovered, see Recover: recovered, unless nil,
// is called with the outcome. A transaction that meets the damage returns it.
func NewShared(path string, prepare func() error, recovered func(*Recovery)) *Shared {
	if recovered == nil {
		recovered = func(*Recovery) {}
	}
	return &Shared{path: path, prepare: prepare, recovered: recovered}
}

// View calls fn as DB.View does, unless there is no file yet.
func (f *Shared) View(fn func(*Tx) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return ErrClosed
	}
	return f.view(func(db *DB) error { return db.View(fn) })
}

// view opens the file for reading, unless there is none yet.
func (f *Shared) view(fn func(*DB) error) error {
	// An empty file is one that another process is about to fill, or has lost its records.
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 && !emptied(f.path) {
		return nil
	}
	return f.with(&Options{ReadOnly: true}, fn)
}

// Verify is DB.Verify. A file that does not exist has no problems.
func (f *Shared) Verify() (found checksum.File, err error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	err = f.view(func(db *DB) error {
		found, err = db.Verify()
		return err
	})
	return found, err
}

// Update calls fn as DB.Update does.
func (f *Shared) Update(fn func(*Tx) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	if err := f.prepare(); err != nil {
		return err
	}
	return f.with(&Options{}, func(db *DB) error {
		err := db.Update(fn)
		f.changed = f.changed || err == nil
		return err
	})
}

// with calls fn with the open file. It recovers a damaged one; what fn has seen of it
// may be incomplete, so that the caller gets the error.
func (f *Shared) with(o *Options, fn func(*DB) error) error {
	o.Timeout, o.Snapshots, o.Convert, o.shared = sharedTimeout, true, true, true
	ran := false
	run := func(db *DB) error { ran = true; return fn(db) }
	err := f.open(o, run)
	if _, corrupt := errors.AsType[*CorruptError](err); !corrupt {
		return err
	}
	if failed := f.recover(); failed != nil {
		return errors.Join(err, failed)
	}
	if ran {
		return fmt.Errorf("%w; it has been recovered, so try again", err)
	}
	return f.open(o, run)
}

func (f *Shared) open(o *Options, fn func(*DB) error) (err error) {
	leave, err := f.turn(o)
	if err != nil {
		return err
	}
	db, err := Open(f.path, o)
	leave()
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := db.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("closing after a transaction: %w", closeErr)
		}
	}()
	if now := time.Now().UnixNano(); now-f.checked.Load() > int64(checkEvery) {
		found, err := db.check()
		if err == nil && len(found.Problems) > 0 {
			err = &CorruptError{Path: f.path, Reason: found.Problems[0]}
		}
		if err != nil {
			return err
		}
		f.checked.Store(now)
	}
	return fn(db)
}

// checkEvery is how often a process reads the whole file to find missing records, which a
// transaction that looks for a few does not notice.
const checkEvery = 10 * time.Minute

// recover replaces the file while no process has it open: the turn keeps others from
// opening it, and the lock waits for those that have.
func (f *Shared) recover() error {
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
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.recover(); err != nil {
		return err
	}
	f.changed = true // so that there is a new snapshot
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
	if !f.changed {
		return nil
	}
	return f.view(func(db *DB) error {
		db.changed.Store(true)
		db.snapshotIfDue(0)
		return nil
	})
}
