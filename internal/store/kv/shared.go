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

	"cairn/internal/base/checksum"
)

// sharedTimeout bounds how long a transaction waits for those of other processes. A large
// import takes seconds.
const sharedTimeout = 20 * time.Second

// checkEvery is the interval at which a process reads the whole file to find missing
// records, which transactions that read a few records do not notice.
const checkEvery = 10 * time.Minute

// Shared is a file that many processes read and write. Each process has it open only
// during a transaction. It suits small data that is rarely read. It is safe for concurrent
// use.
type Shared struct {
	path      string
	prepare   func() error    // creates the folder
	recovered func(*Recovery) // receives the report of a recovery

	mu      sync.Mutex // held during a transaction
	checked time.Time  // when this process last read the whole file
	changed bool       // whether this process has changed the file
	closed  bool
}

// NewShared returns the file at path. The first Update creates it after prepare has created
// its folder. A transaction that finds damage recovers the file, see Recover, calls
// recovered, if it is not nil, and returns an error if it may have read damaged data.
func NewShared(path string, prepare func() error, recovered func(*Recovery)) *Shared {
	if recovered == nil {
		recovered = func(*Recovery) {}
	}
	return &Shared{path: path, prepare: prepare, recovered: recovered}
}

// View calls fn as DB.View does. It does nothing if there is no file yet.
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

// with calls fn with the open file, unless fn only reads and there is no file. It recovers
// a damaged file. If fn has already read from it, the caller gets the error, because the
// data may be incomplete; otherwise with calls fn with the recovered file.
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

// absent reports whether there is no file, or an empty one that another process is
// creating. An empty file with a snapshot is damaged, not absent.
func (f *Shared) absent() bool {
	info, err := os.Stat(f.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 && !emptied(f.path)
}

// open waits for this process's turn and opens the file. It checks the file every
// checkEvery.
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
	if _, err := db.check(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	f.checked = time.Now()
	return db, nil
}

// recover recovers the file.
func (f *Shared) recover() error {
	return f.alone(func() error {
		r, err := Recover(f.path)
		if err == nil && r != nil {
			f.recovered(r)
		}
		return err
	})
}

// Repair repairs the file and returns what it did, see the function Repair.
func (f *Shared) Repair() (did string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err = f.alone(func() error {
		did, err = Repair(f.path)
		return err
	})
	return did, err
}

// alone calls fn in a turn of this process, so that no other process opens the file.
func (f *Shared) alone(fn func() error) error {
	leave, err := f.turn(false)
	if err != nil {
		return err
	}
	defer leave()
	return fn()
}

// turn waits until this process may open the file, and leave ends its turn. A writer that
// waits for the file holds the turn, so that later readers do not starve it. A reader
// that cannot create the lock file opens without a turn.
func (f *Shared) turn(readOnly bool) (leave func(), err error) {
	lock := flock.New(f.path + ".turn")
	ctx, cancel := context.WithTimeout(context.Background(), sharedTimeout)
	defer cancel()
	try := lock.TryLockContext
	if readOnly {
		try = lock.TryRLockContext
	}
	if _, err = try(ctx, time.Millisecond); err != nil {
		_ = lock.Close() // it may have the file open without the lock
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &LockedError{Path: f.path, Waited: sharedTimeout}
	case err != nil && readOnly:
		return func() {}, nil
	case err != nil:
		return nil, fmt.Errorf("opening %s: %w", f.path, err)
	}
	return func() { _ = lock.Close() }, nil // the end of the process releases it too
}

// Close makes further transactions fail with ErrClosed. It writes a snapshot if this
// process has changed the file.
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
