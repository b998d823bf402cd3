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
)

// sharedTimeout is how long a transaction waits for those of other processes. A large
// import takes seconds.
const sharedTimeout = 20 * time.Second

// Shared is a file that many processes read and write: each has it open only during a
// transaction. It suits small data that is rarely asked for; every transaction costs
// some 0.1 ms more. It is safe for concurrent use.
type Shared struct {
	path    string
	prepare func() error // creates the folder

	mu     sync.RWMutex // held for writing during an Update
	closed bool
}

// NewShared returns the file at path, which the first Update creates in the folder
// that prepare makes.
func NewShared(path string, prepare func() error) *Shared {
	return &Shared{path: path, prepare: prepare}
}

// View calls fn as DB.View does, unless there is no file yet.
func (f *Shared) View(fn func(*Tx) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return ErrClosed
	}
	// An empty file is one that another process is about to fill.
	if info, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	return f.with(&Options{ReadOnly: true, Timeout: sharedTimeout}, func(db *DB) error { return db.View(fn) })
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
	return f.with(&Options{Timeout: sharedTimeout}, func(db *DB) error { return db.Update(fn) })
}

func (f *Shared) with(o *Options, fn func(*DB) error) (err error) {
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
	return fn(db)
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

// Close makes further transactions fail with ErrClosed.
func (f *Shared) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	return nil
}
