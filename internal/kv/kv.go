// Package kv keeps named buckets of ordered keys in one file, on bbolt, whose only
// importer it is. It does not order writes across files.
//
// Every value has a checksum, and every bucket a digest of its records: damage that a
// transaction meets ends it with a *CorruptError. Recover makes a whole file from what is
// left of a damaged one and from its snapshots.
//
// One process has a file open for writing, or any number for reading: bbolt locks it
// for as long as it is open. Shared is for files that many processes write.
package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
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
	// Snapshots keeps copies of the records next to the file: see Snapshot.
	Snapshots bool
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
	file *os.File     // of bolt

	changed      atomic.Bool // since the last snapshot
	snapshotting sync.Mutex
	broken       atomic.Pointer[string] // why bolt cannot be used, and its locks may be held
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
	if db.options.Snapshots && emptied(db.path) {
		return &CorruptError{Path: db.path, Reason: "it is empty, its snapshot is not"}
	}
	_, absent := os.Lstat(db.path)
	bolt, err := db.openWithin(open)
	if err != nil && errors.Is(absent, fs.ErrNotExist) && !errors.Is(err, bolterrors.ErrTimeout) {
		_ = os.Remove(db.path) // as far as it was made, on a full disk
	}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return &LockedError{Path: db.path, Waited: db.options.Timeout}
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return &CorruptError{Path: db.path, Reason: err.Error()}
	case isSystem(err): // such as a full disk, which says nothing about the file
		return fmt.Errorf("opening %s: %w", db.path, err)
	case err != nil:
		if info, statErr := os.Stat(db.path); statErr == nil && info.Mode().IsRegular() && info.Size() < 2*int64(os.Getpagesize()) {
			return &CorruptError{Path: db.path, Reason: err.Error()}
		}
		return fmt.Errorf("opening %s: %w", db.path, err)
	}
	db.bolt, db.file = bolt, file
	bolt.AllocSize = leastGrowth
	if err = db.checkWhole(); err != nil {
		_ = db.closeBolt() // it is damaged
		db.bolt = nil
	}
	return err
}

// A file that has no room left grows by an eighth, but by leastGrowth to mostGrowth: each
// growth waits for the disk, and bbolt's 16 MB are more than most folders need.
const (
	leastGrowth = 256 << 10
	mostGrowth  = 16 << 20
)

// isSystem reports whether err is the operating system's.
func isSystem(err error) bool {
	_, ok := errors.AsType[syscall.Errno](err)
	return ok
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

// checkWhole compares the length the last commit claims with the file's, checks both
// headers, and reads the root: a file cut short would fault later, inside a query, and
// with one header damaged bbolt silently goes back to the commit before.
func (db *DB) checkWhole() error {
	info, err := db.file.Stat()
	if err != nil {
		return fmt.Errorf("opening %s: %w", db.path, err)
	}
	return db.bolt.View(func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() {
			return &CorruptError{Path: db.path, Reason: fmt.Sprintf("%d bytes of %d are there", info.Size(), tx.Size())}
		}
		if _, err := readHeader(db.file); err != nil {
			return &CorruptError{Path: db.path, Reason: err.Error()}
		}
		if first, _ := tx.Cursor().First(); first != nil && tx.Bucket([]byte(sumsBucket)) == nil {
			return &CorruptError{Path: db.path, Reason: "its checksums are missing"}
		}
		return nil
	})
}

// damage is the panic with which a transaction ends that meets damage.
type damage string

// damaged turns every panic of bbolt, which the caller has called and nothing else,
// into damage. It is deferred.
func damaged() {
	switch v := recover().(type) {
	case nil:
	case damage:
		panic(v)
	default:
		panic(damage(fmt.Sprint(v)))
	}
}

// report returns damage as a *CorruptError, as well as a fault on mapped memory that
// is missing, which values may meet after they were handed out. Any other panic is a
// caller's and goes on. It is deferred.
func (db *DB) report(err *error) {
	switch v := recover().(type) {
	case nil:
	case damage:
		*err = &CorruptError{Path: db.path, Reason: string(v)}
	case interface{ Addr() uintptr }:
		*err = &CorruptError{Path: db.path, Reason: "a page is outside the file"}
	default:
		panic(v)
	}
}

// View calls fn with a transaction that sees the last commit. Bytes it hands
// out are valid until fn returns. Do not nest View or Update.
func (db *DB) View(fn func(*Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.view(fn)
}

// view is View with db.mu held.
func (db *DB) view(fn func(*Tx) error) (err error) {
	defer db.report(&err)
	tx, err := db.begin(false)
	if err != nil {
		return err
	}
	defer tx.Rollback() // of a reading transaction: it reads nothing and returns no error
	return fn(&Tx{tx: tx})
}

// Update calls fn with a transaction that may write, one at a time. When fn
// returns nil the changes are on disk before Update returns; otherwise there
// are none. Do not nest View or Update.
func (db *DB) Update(fn func(*Tx) error) (err error) {
	if db.options.ReadOnly {
		return fmt.Errorf("writing %s: %w", db.path, ErrReadOnly)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer db.report(&err)
	db.mu.RLock()
	defer db.mu.RUnlock()
	tx, err := db.begin(true)
	if err != nil {
		return err
	}
	defer db.rollback(tx) // after Commit it does nothing
	db.bolt.AllocSize = int(min(max(leastGrowth, tx.Size()/8), mostGrowth))
	t := &Tx{tx: tx, write: true}
	if err := fn(t); err != nil {
		return err
	}
	if err := commit(t); err != nil {
		return fmt.Errorf("writing %s: %w", db.path, err)
	}
	db.changed.Store(true)
	db.snapshotIfDue(snapshotEvery)
	return nil
}

func (db *DB) begin(write bool) (*bbolt.Tx, error) {
	if db.bolt == nil {
		return nil, ErrClosed
	}
	if reason := db.broken.Load(); reason != nil {
		return nil, &CorruptError{Path: db.path, Reason: *reason}
	}
	defer db.breaks()
	tx, err := db.bolt.Begin(write)
	if err != nil {
		return nil, fmt.Errorf("opening a transaction of %s: %w", db.path, err)
	}
	return tx, nil
}

// rollback ends a writing transaction. It reads pages: one that is damaged makes
// bbolt panic with its locks held, so that the file cannot be used any more.
func (db *DB) rollback(tx *bbolt.Tx) {
	defer db.breaks()
	_ = tx.Rollback() // the error says that the transaction has ended
}

// breaks is damaged for calls that leave bbolt unusable. It is deferred.
func (db *DB) breaks() {
	if v := recover(); v != nil {
		reason := fmt.Sprint(v)
		db.broken.Store(&reason)
		panic(damage(reason))
	}
}

func commit(t *Tx) error {
	defer damaged()
	if err := t.writeDigests(); err != nil {
		return err
	}
	return t.tx.Commit()
}

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
	db.snapshotIfDue(0)
	err := db.closeBolt()
	db.bolt = nil
	if err != nil {
		return fmt.Errorf("closing %s: %w", db.path, err)
	}
	return nil
}

// closeBolt closes the file. Of one that is broken the mapping remains, since bbolt
// waits for its locks to remove it.
func (db *DB) closeBolt() error {
	if db.broken.Load() == nil {
		return db.bolt.Close()
	}
	unlock(db.file)
	return db.file.Close()
}
