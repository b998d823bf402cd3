// Package kv keeps named buckets of ordered keys in one file, on bbolt, whose only
// importer it is. It does not order writes across files.
//
// One process has a file open for writing, or any number for reading: bbolt locks it
// for as long as it is open. Shared is for files that many processes write.
package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// DefaultTimeout is how long Open waits for another process.
const DefaultTimeout = 1500 * time.Millisecond

// Options are the knobs of Open. Nil and the zero value mean the defaults.
type Options struct {
	// ReadOnly opens an existing file for View only.
	ReadOnly bool
	// Timeout bounds the wait of Open for another process that has the file open. 0
	// means DefaultTimeout.
	Timeout time.Duration
}

// ErrReadOnly is returned by Update on a database opened read-only.
var ErrReadOnly = errors.New("opened read-only")

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("closed")

// LockedError says that another process has the file open: for writing or, when this
// one wants to write, at all.
type LockedError struct {
	Path   string
	Waited time.Duration
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by another process (waited %v)", e.Path, e.Waited)
}

// CorruptError says that the file is not one of ours or is damaged. The file
// is left as it is.
type CorruptError struct {
	Path   string
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is damaged or not a database of cairn: %s", e.Path, e.Reason)
}

// DB is an open file. It is safe for concurrent use.
type DB struct {
	path    string
	options Options

	mu   sync.RWMutex // held for reading during a View or an Update
	bolt *bbolt.DB    // nil after Close
}

// Open opens the file at path, and unless read-only creates it with its
// folder. It fails with *LockedError when another process has it open for
// writing, or at all unless read-only, with *CorruptError when it is damaged, and
// with an error that is fs.ErrNotExist when a read-only file is absent.
func Open(path string, o *Options) (*DB, error) {
	db := &DB{path: path}
	if o != nil {
		db.options = *o
	}
	if db.options.Timeout <= 0 {
		db.options.Timeout = DefaultTimeout
	}
	if !db.options.ReadOnly {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("opening %s: %w", path, err)
		}
	}
	if err := db.open(); err != nil {
		return nil, err
	}
	return db, nil
}

// mapped is the address space reserved at least, so that a growing file is
// rarely mapped again, which waits for every reader.
func mapped() int {
	if runtime.GOOS == "windows" || ^uint(0)>>32 == 0 {
		return 0 // Windows would grow the file to it; 32 bits lack the space
	}
	return 1 << 30
}

// open opens the bbolt file and checks that it is whole.
func (db *DB) open() (err error) {
	var file *os.File
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { // no code of a caller runs below: every panic is bbolt's, about what it read
		if v := recover(); v != nil {
			if file != nil {
				unlock(file) // the mapping that bbolt leaves behind would keep the lock
				file.Close()
			}
			err = &CorruptError{Path: db.path, Reason: fmt.Sprint(v)}
		}
	}()
	open := func() (*bbolt.DB, error) {
		return bbolt.Open(db.path, 0o644, &bbolt.Options{
			ReadOnly:        db.options.ReadOnly,
			Timeout:         1,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: mapped(),
			NoStatistics:    true,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				f, err := os.OpenFile(name, flag, mode)
				file = f
				return f, err
			},
		})
	}
	bolt, err := db.openWithin(open)
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return &LockedError{Path: db.path, Waited: db.options.Timeout}
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return &CorruptError{Path: db.path, Reason: err.Error()}
	case err != nil:
		if info, statErr := os.Stat(db.path); statErr == nil && info.Mode().IsRegular() && info.Size() < 2*int64(os.Getpagesize()) {
			return &CorruptError{Path: db.path, Reason: err.Error()}
		}
		return fmt.Errorf("opening %s: %w", db.path, err)
	}
	if err := checkWhole(bolt, file, db.path); err != nil {
		bolt.Close()
		return err
	}
	db.bolt = bolt
	return nil
}

// retryEvery is the pause between two tries to open a file that another process has
// open. bbolt itself waits 50 ms, longer than most transactions take.
const retryEvery = time.Millisecond

// openWithin calls open until it gets the lock, within the timeout.
func (db *DB) openWithin(open func() (*bbolt.DB, error)) (*bbolt.DB, error) {
	for end := time.Now().Add(db.options.Timeout); ; time.Sleep(retryEvery) {
		bolt, err := open()
		if !errors.Is(err, bolterrors.ErrTimeout) || time.Now().After(end) {
			return bolt, err
		}
	}
}

// checkWhole compares the length the last commit claims with the file's, and
// reads the root: a file cut short would fault later, inside a query.
func checkWhole(bolt *bbolt.DB, file *os.File, path string) error {
	return bolt.View(func(tx *bbolt.Tx) error {
		info, err := file.Stat()
		if err != nil {
			return fmt.Errorf("opening %s: %w", path, err)
		}
		if tx.Size() > info.Size() {
			return &CorruptError{Path: path, Reason: fmt.Sprintf("%d bytes of %d are there", info.Size(), tx.Size())}
		}
		return tx.ForEach(func([]byte, *bbolt.Bucket) error { return nil })
	})
}

// recoverCorrupt turns bbolt's assertions and faults on mapped memory that is
// not there into an error. Any other panic goes on.
func recoverCorrupt(path string, err *error) {
	switch v := recover().(type) {
	case nil:
	case string:
		if !strings.HasPrefix(v, "assertion failed") && !strings.Contains(v, "above high water mark") &&
			!strings.HasPrefix(v, "invalid page type") && !strings.HasPrefix(v, "misplaced bucket header") {
			panic(v)
		}
		*err = &CorruptError{Path: path, Reason: v}
	case interface{ Addr() uintptr }:
		*err = &CorruptError{Path: path, Reason: "a page is outside the file"}
	default:
		panic(v)
	}
}

// View calls fn with a transaction that sees the last commit. Bytes it hands
// out are valid until fn returns. Do not nest View or Update.
func (db *DB) View(fn func(*Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer recoverCorrupt(db.path, &err)
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.bolt == nil {
		return ErrClosed
	}
	return db.bolt.View(func(tx *bbolt.Tx) error { return fn(&Tx{tx: tx}) })
}

// Update calls fn with a transaction that may write, one at a time. When fn
// returns nil the changes are on disk before Update returns; otherwise there
// are none. Do not nest View or Update.
func (db *DB) Update(fn func(*Tx) error) (err error) {
	if db.options.ReadOnly {
		return fmt.Errorf("writing %s: %w", db.path, ErrReadOnly)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer recoverCorrupt(db.path, &err)
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.bolt == nil {
		return ErrClosed
	}
	tx, err := db.bolt.Begin(true)
	if err != nil {
		return fmt.Errorf("writing %s: %w", db.path, err)
	}
	defer tx.Rollback() // after Commit it does nothing
	if err := fn(&Tx{tx: tx, write: true}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("writing %s: %w", db.path, err)
	}
	return nil
}

// Path returns the file's path as given to Open.
func (db *DB) Path() string { return db.path }

// ReadOnly reports whether the database was opened read-only.
func (db *DB) ReadOnly() bool { return db.options.ReadOnly }

// Close waits for running transactions and closes the file. Closing twice is
// not an error.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.bolt == nil {
		return nil
	}
	err := db.bolt.Close()
	db.bolt = nil
	if err != nil {
		return fmt.Errorf("closing %s: %w", db.path, err)
	}
	return nil
}
