package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"cairn/internal/base/health"
)

// sharedTimeout bounds how long a transaction waits for those of other processes. A large
// import takes seconds.
const sharedTimeout = 20 * time.Second

// checkEvery is the interval at which a process reads a whole shared file to find missing
// records, which transactions that read a few records do not notice.
const checkEvery = 10 * time.Minute

// FileOptions configures NewFile. Nil and the zero value mean the defaults.
type FileOptions struct {
	// Shared reports that other processes write the file, too. Each process then has it open
	// only during a transaction, which suits small data that is rarely read.
	Shared bool
	// ReadOnly reads the file of another process, see Options.Owned, and recovers nothing.
	ReadOnly bool
	// Prepare creates the folder before a write. Nil does nothing.
	Prepare func() error
	// Logger receives the report of a recovery. Nil discards it.
	Logger *slog.Logger
}

// File is a file of records with a snapshot. The first transaction opens it, and the first
// Update creates it. A transaction that finds damage recovers the file, see Recover, and
// fails if it may have read damaged data. File is safe for concurrent use.
type File struct {
	path string
	o    FileOptions

	mu        sync.Mutex  // held during a transaction of a shared file
	db        *DB         // nil until it is open, and for a shared file
	recovered health.File // the last recovery
	checked   time.Time   // when this process last read the whole file
	changed   bool        // whether this process has changed the file
	closed    bool
}

// NewFile returns the file at path.
func NewFile(path string, o *FileOptions) *File {
	f := &File{path: path, o: *cmp.Or(o, &FileOptions{})}
	if f.o.Prepare == nil {
		f.o.Prepare = func() error { return nil }
	}
	f.o.Logger = cmp.Or(f.o.Logger, slog.New(slog.DiscardHandler))
	return f
}

// View calls fn as DB.View does. It does nothing if there is no file yet.
func (f *File) View(fn func(*Tx) error) error {
	return f.with(false, func(db *DB) error { return db.View(fn) })
}

// Update calls fn as DB.Update does.
func (f *File) Update(fn func(*Tx) error) error {
	return f.with(true, func(db *DB) error { return db.Update(fn) })
}

// Part returns the check of the file, DB.Verify, and its repair: Repair. It also reports the
// last recovery of a file that has no problem now.
func (f *File) Part() health.Part { return health.Part{Check: f.check, Repair: f.repair} }

func (f *File) check(context.Context) (found health.File, err error) {
	err = f.with(false, func(db *DB) error {
		found, err = db.Verify()
		return err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(found.Problems) == 0 {
		found.Problems, found.Repaired = f.recovered.Problems, f.recovered.Repaired
	}
	return found, err
}

func (f *File) repair(context.Context, health.File) (did string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err = f.alone(func() error {
		did, err = Repair(f.path)
		return err
	})
	return did, err
}

// with calls fn with the open file, unless fn only reads and there is no file. It recovers
// a damaged file. If fn has already read from it, the caller gets the error, because the
// data may be incomplete; otherwise with calls fn with the recovered file.
func (f *File) with(write bool, fn func(*DB) error) error {
	var used *DB // that fn has begun to use
	once := func() (err error) {
		db, release, err := f.acquire(write)
		if err != nil || db == nil {
			return err
		}
		defer func() {
			if failed := release(write && err == nil); err == nil {
				err = failed
			}
		}()
		used = db
		return fn(db)
	}
	err := once()
	if _, corrupt := errors.AsType[*CorruptError](err); !corrupt || f.o.ReadOnly {
		return err
	}
	if failed := f.recover(used); failed != nil {
		return errors.Join(err, failed)
	}
	if used != nil {
		return fmt.Errorf("%w; it has been recovered, so try again", err)
	}
	return once()
}

// acquire returns the open file, nil for a read if there is no file. The caller ends its
// use with release, and says whether it has changed the file.
func (f *File) acquire(write bool) (db *DB, release func(changed bool) error, err error) {
	f.mu.Lock()
	if f.closed {
		err = ErrClosed
	} else if write {
		err = f.o.Prepare()
	} else if f.db == nil && f.absent() {
		f.mu.Unlock()
		return nil, nil, nil
	}
	if db = f.db; db == nil && err == nil {
		db, err = f.open(!write)
	}
	if err != nil {
		f.mu.Unlock()
		return nil, nil, err
	}
	if !f.o.Shared {
		f.db = db
		f.mu.Unlock()
		return db, func(bool) error { return nil }, nil
	}
	return db, func(changed bool) error {
		defer f.mu.Unlock()
		f.changed = f.changed || changed
		db.changed.Store(false) // Close writes the snapshot of all transactions
		return db.Close()
	}, nil
}

// absent reports whether there is no file, or an empty one that another process is
// creating. An empty or missing file with a snapshot is damaged, not absent.
func (f *File) absent() bool {
	info, err := os.Stat(f.path)
	return (errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0) && lost(f.path) == ""
}

// open opens the file. For a shared one it waits for the turn of this process, and checks
// the file every checkEvery.
func (f *File) open(readOnly bool) (*DB, error) {
	if !f.o.Shared {
		return Open(f.path, &Options{ReadOnly: f.o.ReadOnly, Snapshots: true, Owned: true})
	}
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

// recover recovers the file, unless another transaction that used db has done so.
func (f *File) recover(used *DB) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.o.Shared && f.db != used {
		return nil
	}
	return f.alone(func() error {
		found, err := Recover(f.path)
		if err == nil && found.Repaired != "" {
			f.recovered = found
			f.o.Logger.Warn("a file of records was recovered", "recovery", found.Repaired)
		}
		return err
	})
}

// alone calls fn while neither this process nor another one has the file open. The caller
// holds f.mu.
func (f *File) alone(fn func() error) error {
	if f.db != nil {
		if err := f.db.Close(); err != nil {
			f.o.Logger.Warn("closing a damaged file", "path", f.path, "error", err)
		}
		f.db = nil
	}
	if !f.o.Shared {
		return fn()
	}
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
func (f *File) turn(readOnly bool) (leave func(), err error) {
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
		return nil, locked(f.path, sharedTimeout)
	case err != nil && readOnly:
		return func() {}, nil
	case err != nil:
		return nil, fmt.Errorf("opening %s: %w", f.path, err)
	}
	return func() { _ = lock.Close() }, nil // the end of the process releases it too
}

// Close makes further transactions fail with ErrClosed. It writes a snapshot if this
// process has changed the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	if f.db != nil {
		return f.db.Close()
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
	return db.Close()
}
