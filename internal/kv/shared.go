package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"cairn/internal/checksum"
)

// sharedTimeout is how long a transaction waits for those of other processes. A large
// import takes seconds.
const sharedTimeout = 20 * time.Second

// checkEvery is how often a process reads the whole file to find missing records, which a
// transaction that looks for a few does not notice.
const checkEvery = 10 * time.Minute

// Shared is a file that many processes read and write: each has it open only during a
// transaction. It suits small data that is rarely asked for. It is safe for concurrent
// use.
type Shared struct {
	path      string
	prepare   func() error    // creates the folder
	recovered func(*Recovery) // hears of a recovery

	mu      sync.Mutex // held during a transaction
	checked time.Time  // when this process last read the whole file
	changed bool       // by this process
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
		f.changed = f.changed || err == nil
		return err
	})
}

// with calls fn with the open file; not for reading where there is none. It recovers a
// damaged one; what fn has seen of it may be incomplete, so that the caller gets the
// error.
func (f *Shared) with(write bool, fn func(*DB) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	if !write && f.absent() {
		return nil
	}
	if write {
		if err := f.prepare(); err != nil {
			return err
		}
	}
	begun := false
	once := func() (err error) {
		db, err := f.open(!write)
		if err != nil {
			return err
		}
		defer func() {
			if failed := db.Close(); err == nil {
				err = failed
			}
		}()
		begun = true
		defer db.changed.Store(false) // Close writes the snapshot of all transactions
		return fn(db)
	}
	err := once()
	if _, corrupt := errors.AsType[*CorruptError](err); !corrupt {
		return err
	}
	if failed := f.recover(); failed != nil {
		return errors.Join(err, failed)
	}
	if begun {
		return fmt.Errorf("%w; it has been recovered, so try again", err)
	}
	return once()
}

// absent reports whether there is no file, or an empty one that another process is about
// to fill. An empty file with a snapshot has lost its records.
func (f *Shared) absent() bool {
	info, err := os.Stat(f.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 && !emptied(f.path)
}

// open opens the file when it is this process's turn, and checks it now and then.
func (f *Shared) open(readOnly bool) (*DB, error) {
	leave, err := f.turn(readOnly)
	if err != nil {
		return nil, err
	}
	db, err := Open(f.path, &Options{ReadOnly: readOnly, Timeout: sharedTimeout, Snapshots: true})
	leave()
	if err != nil || time.Since(f.checked) < checkEvery {
		return db, err
	}
	found, err := db.check()
	if err == nil && len(found.Problems) > 0 {
		err = &CorruptError{Path: f.path, Reason: found.Problems[0]}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	f.checked = time.Now()
	return db, nil
}

// recover replaces the file while no process has it open: the turn keeps others from
// opening it, and the lock waits for those that have.
func (f *Shared) recover() error {
	leave, err := f.turn(false)
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
func (f *Shared) turn(readOnly bool) (leave func(), err error) {
	lock := flock.New(f.path + ".turn")
	ctx, cancel := context.WithTimeout(context.Background(), sharedTimeout)
	defer cancel()
	try := lock.TryLockContext
	if readOnly {
		try = lock.TryRLockContext
	}
	if _, err = try(ctx, time.Millisecond); err != nil {
		_ = lock.Close() // it may hold the file open without the lock
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &LockedError{Path: f.path, Waited: sharedTimeout}
	case err != nil && readOnly:
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
	db, err := f.open(true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	db.changed.Store(true)
	return db.Close()
}
