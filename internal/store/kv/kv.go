// Package kv stores named buckets of ordered keys in one bbolt file. It does not order
// writes to different files.
//
// Every value has a checksum, and every bucket has a digest of its records. A transaction
// that reads damaged data ends with a *CorruptError. Recover replaces a damaged file by one
// with the records of its snapshot.
//
// Either one process has a file open for writing, or any number have it open for reading:
// bbolt locks the file while it is open. A file with Options.Owned is not locked. A File
// opens and recovers its file, which processes may share.
package kv

import (
	"cmp"
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

// Options configures Open. Nil and the zero value mean the defaults.
type Options struct {
	// ReadOnly opens an existing file for View only.
	ReadOnly bool
	// Snapshots keeps a copy of the records in a file with the suffix ".snapshot", from
	// which Recover restores them.
	Snapshots bool
	// Owned reports that only the owner of the folder opens the file for writing. The file
	// is then locked only while Open runs, so that others can read the file of an owner
	// that does not answer. They must compare versions, see Version.
	Owned bool
	// PageSize is the size of the pages of a new file in bytes, a power of two from 1,024;
	// 0 means that of the system. A file of values of some KB is smaller with small pages.
	PageSize int
	// Timeout bounds how long Open waits for another process that has the file open. 0
	// means DefaultTimeout.
	Timeout time.Duration
}

// ErrReadOnly is returned by Update on a database opened read-only.
var ErrReadOnly = errors.New("opened read-only")

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("closed")

// CorruptError reports a file that is damaged or not a database of cairn. The failed
// operation has not changed it.
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
	file *os.File     // the file that bolt has open

	changed      atomic.Bool // whether there are changes since the last snapshot
	snapshotting sync.Mutex
	broken       atomic.Pointer[string] // why bolt is unusable and may hold its locks
}

// Open opens the file at path. Unless read-only, it creates the file and its folder if
// they are missing. It fails if another process has the file open (for a read-only DB: open
// for writing), with a *CorruptError if it is damaged, and with an error that wraps
// fs.ErrNotExist if a file to read is missing.
func Open(path string, o *Options) (*DB, error) {
	db := &DB{path: path, options: *cmp.Or(o, &Options{})}
	if db.options.Timeout <= 0 {
		db.options.Timeout = DefaultTimeout
	}
	if !db.options.ReadOnly {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fmt.Errorf("opening %s: %w", path, err)
		}
	}
	if err := db.open(); err != nil {
		return nil, err
	}
	return db, nil
}

// mapped returns the initial size of the memory map in bytes. It is large because a file
// that outgrows it is mapped again, which waits for every reader.
func mapped() int {
	if runtime.GOOS == "windows" || ^uint(0)>>32 == 0 {
		return 0 // Windows would grow the file to that size; 32 bits have too little address space
	}
	return 1 << 30
}

// open opens the bbolt file and checks that it is whole.
func (db *DB) open() (err error) {
	var file *os.File
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { // no caller's code runs below, so that a panic means that bbolt read damaged data
		if v := recover(); v != nil {
			if file != nil {
				unlock(file) // the memory map that bbolt leaves would keep the lock
				file.Close()
			}
			err = &CorruptError{Path: db.path, Reason: fmt.Sprint(v)}
		}
	}()
	open := func() (*bbolt.DB, error) {
		return bbolt.Open(db.path, 0o600, &bbolt.Options{
			ReadOnly:        db.options.ReadOnly,
			Timeout:         1,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: mapped(),
			PageSize:        db.options.PageSize,
			NoStatistics:    true,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				f, err := os.OpenFile(name, flag, mode)
				file = f
				return f, err
			},
		})
	}
	if reason := lost(db.path); db.options.Snapshots && reason != "" {
		return &CorruptError{Path: db.path, Reason: reason}
	}
	_, absent := os.Lstat(db.path)
	bolt, err := open()
	for end := time.Now().Add(db.options.Timeout); errors.Is(err, bolterrors.ErrTimeout) && time.Now().Before(end); bolt, err = open() {
		time.Sleep(retryEvery)
	}
	if err == nil && db.options.Owned {
		unlock(file)
	}
	if err != nil && !db.options.ReadOnly && errors.Is(absent, fs.ErrNotExist) && !errors.Is(err, bolterrors.ErrTimeout) {
		_ = os.Remove(db.path) // incomplete, for example because the disk is full
	}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return locked(db.path, db.options.Timeout)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return &CorruptError{Path: db.path, Reason: err.Error()}
	case isSystem(err): // such as a full disk, which does not mean that the file is damaged
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
		_ = db.closeBolt() // err says more
		db.bolt = nil
	}
	return err
}

// A full file grows by an eighth of its size, within leastGrowth and mostGrowth bytes. Each
// growth waits for the disk, and bbolt's default of 16 MB is more than most folders need.
const (
	leastGrowth = 256 << 10
	mostGrowth  = 16 << 20
)

// locked reports that another process has the file open for writing or, if this process opens
// it for writing, has it open at all.
func locked(path string, waited time.Duration) error {
	return fmt.Errorf("%s is in use by another process (waited %v)", path, waited)
}

// isSystem reports whether the operating system returned err.
func isSystem(err error) bool {
	_, ok := errors.AsType[syscall.Errno](err)
	return ok
}

// retryEvery is the pause between two attempts to open a file that another process has
// open. bbolt's own is 50 ms, longer than most transactions take.
const retryEvery = time.Millisecond

// checkWhole compares the length of the file with the one in the last commit, checks both
// headers, and reads the root. A truncated file would fault later, inside a query; with
// one damaged header, bbolt silently uses the commit before.
func (db *DB) checkWhole() error {
	info, err := db.file.Stat()
	if err != nil {
		return fmt.Errorf("opening %s: %w", db.path, err)
	}
	return db.bolt.View(func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() {
			return &CorruptError{Path: db.path, Reason: fmt.Sprintf("it has %d of %d bytes", info.Size(), tx.Size())}
		}
		if _, _, err := readHeaders(db.file); err != nil {
			return &CorruptError{Path: db.path, Reason: err.Error()}
		}
		if first, _ := tx.Cursor().First(); first != nil && tx.Bucket([]byte(sumsBucket)) == nil {
			return &CorruptError{Path: db.path, Reason: "its checksums are missing"}
		}
		return nil
	})
}

// damage is the panic that ends a transaction which has read damaged data.
type damage string

// damaged turns a panic of bbolt into damage. Functions that call only bbolt defer it.
func damaged() {
	switch v := recover().(type) {
	case nil:
	case damage:
		panic(v)
	default:
		panic(damage(fmt.Sprint(v)))
	}
}

// report turns damage into a *CorruptError. It does the same for a fault in the memory map,
// which may happen when a caller reads a value. It repeats other panics, which are the
// caller's. View and Update defer it.
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

// View calls fn with a transaction that reads the last commit. Its bytes are valid until
// fn returns. Calls of View and Update must not be nested.
func (db *DB) View(fn func(*Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	db.mu.RLock()
	defer db.mu.RUnlock()
	return db.view(fn)
}

// view is View for a caller that holds db.mu.
func (db *DB) view(fn func(*Tx) error) (err error) {
	defer db.report(&err)
	tx, err := db.begin(false)
	if err != nil {
		return err
	}
	defer tx.Rollback() // returns no error for a transaction that only reads
	return fn(&Tx{tx: tx})
}

// Update calls fn with a transaction that may write. Transactions that write run one at a
// time. If fn returns nil, the changes are on disk before Update returns; otherwise Update
// discards them. Calls of View and Update must not be nested.
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
	defer db.rollback(tx) // does nothing after a commit
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

// rollback ends a writing transaction. It reads pages. On a damaged one bbolt panics with
// its locks held, so that the file becomes unusable.
func (db *DB) rollback(tx *bbolt.Tx) {
	defer db.breaks()
	_ = tx.Rollback() // an error means that the transaction has ended
}

// breaks is damaged for calls whose panics leave bbolt unusable.
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

// Close waits for running transactions and closes the file. A second call does nothing.
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

// closeBolt closes the file. The memory map of a broken one remains, because bbolt would
// wait for its locks.
func (db *DB) closeBolt() error {
	if db.broken.Load() == nil {
		return db.bolt.Close()
	}
	unlock(db.file)
	return db.file.Close()
}
