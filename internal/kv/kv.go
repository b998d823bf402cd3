// Package kv keeps named buckets of ordered keys in one file, on bbolt. It is
// the only importer of bbolt. One process writes; any number of processes read
// at the same time, also while the writer commits, each from the last commit
// it saw.
//
// bbolt alone shuts readers of other processes out for as long as a writer
// has the file open. Here the writer's exclusion is a lock on a file of its
// own (path + ".lock", held while open), and the data file's lock is held only
// by a reader of another process for the length of one View. bbolt never
// overwrites a page that its last commit reaches; pages that became free are
// taken again from the second commit after. So it is enough that a writer,
// before each transaction, waits for one instant without foreign readers:
// whoever reads later sees the newer commit (see gate).
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

// readerTimeout is how long Update waits for readers of other processes to leave.
// They stay for milliseconds; on a busy machine one may be set aside inside.
const readerTimeout = 30 * time.Second

// writerTimeout is how long View waits for a writer in another process that has
// shut readers out. It does so for microseconds, or until other readers have left.
const writerTimeout = 5 * time.Second

// Options are the knobs of Open. Nil and the zero value mean the defaults.
type Options struct {
	// ReadOnly opens an existing file for View only. It works while another
	// process writes.
	ReadOnly bool
	// Timeout bounds the wait of Open for another process that writes. 0 means
	// DefaultTimeout.
	Timeout time.Duration
}

// ErrReadOnly is returned by Update on a database opened read-only.
var ErrReadOnly = errors.New("opened read-only")

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("closed")

// LockedError says that another process has the file open for writing or, from
// Update and View, that one has come to a halt while it read, or was about to write.
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
	lock    *os.File // the writer's, held until Close

	mu   sync.RWMutex // held for reading during a View, for writing to replace bolt
	bolt *bbolt.DB
	file *os.File // what bolt has open
	size int64    // bytes that are mapped
}

// Open opens the file at path, and unless read-only creates it with its
// folder. It fails with *LockedError when another process has it open for
// writing (read-only never does), with *CorruptError when it is damaged, and
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
		lock, err := lockWriter(path+".lock", db.options.Timeout)
		if errors.Is(err, errBusy) {
			return nil, &LockedError{Path: path, Waited: db.options.Timeout}
		}
		if err != nil {
			return nil, fmt.Errorf("opening %s: %w", path, err)
		}
		db.lock = lock
	}
	if err := db.open(); err != nil {
		if db.lock != nil {
			db.lock.Close()
		}
		return nil, err
	}
	return db, nil
}

// mapped is the address space reserved at least, so that a growing file is
// rarely mapped anew, which waits for every reader.
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
				unlock(file) // the mapping bbolt leaves behind would keep the lock
				file.Close()
			}
			err = &CorruptError{Path: db.path, Reason: fmt.Sprint(v)}
		}
	}()
	// bbolt asks for its lock again every 50 ms, and a reader is inside for less
	// than one: with a timeout of nothing it asks once, and asking again is done here.
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
	if err := unlock(file); err != nil {
		bolt.Close()
		return fmt.Errorf("opening %s: %w", db.path, err)
	}
	info, err := file.Stat()
	if err != nil {
		bolt.Close()
		return fmt.Errorf("opening %s: %w", db.path, err)
	}
	db.bolt, db.file, db.size = bolt, file, max(info.Size(), int64(mapped()))
	return nil
}

// openWithin calls open until it has the lock, within the timeout. A writer lets
// no further readers in meanwhile.
func (db *DB) openWithin(open func() (*bbolt.DB, error)) (*bbolt.DB, error) {
	end := time.Now().Add(db.options.Timeout)
	bolt, err := open()
	if !errors.Is(err, bolterrors.ErrTimeout) {
		return bolt, err
	}
	if !db.options.ReadOnly {
		turnstile, err := holdTurnstile(db.path, db.options.Timeout)
		if errors.Is(err, errBusy) {
			return nil, bolterrors.ErrTimeout
		}
		if err != nil {
			return nil, err
		}
		if turnstile != nil {
			defer turnstile.Close()
		}
	}
	for errors.Is(err, bolterrors.ErrTimeout) && time.Now().Before(end) {
		time.Sleep(100 * time.Microsecond)
		bolt, err = open()
	}
	return bolt, err
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
		*err = &CorruptError{Path: path, Reason: "a page lies outside the file"}
	default:
		panic(v)
	}
}

// View calls fn with a transaction that sees the last commit. Bytes it hands
// out are valid until fn returns. Do not nest View or Update.
func (db *DB) View(fn func(*Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer recoverCorrupt(db.path, &err)
	if !db.options.ReadOnly {
		db.mu.RLock()
		defer db.mu.RUnlock()
		if db.bolt == nil {
			return ErrClosed
		}
		return db.bolt.View(func(tx *bbolt.Tx) error { return fn(&Tx{tx: tx}) })
	}
	for {
		again, err := db.viewForeign(fn)
		if !again {
			return err
		}
		if err := db.reopen(); err != nil {
			return err
		}
	}
}

// viewForeign is View beside a writer in another process. again is set, and fn
// not called, when the file has been replaced or has outgrown the mapping.
func (db *DB) viewForeign(fn func(*Tx) error) (again bool, err error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.bolt == nil {
		return false, ErrClosed
	}
	gate, err := enter(db.path, writerTimeout)
	if errors.Is(err, errBusy) {
		return false, &LockedError{Path: db.path, Waited: writerTimeout}
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", db.path, err)
	}
	defer gate.Close()
	if same, err := sameFile(gate, db.file); err != nil || !same {
		return err == nil, err
	}
	err = db.bolt.View(func(tx *bbolt.Tx) error {
		if tx.Size() > db.size {
			again = true
			return nil
		}
		return fn(&Tx{tx: tx})
	})
	return again, err
}

func (db *DB) reopen() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.bolt == nil {
		return ErrClosed
	}
	old := db.bolt
	if err := db.open(); err != nil {
		return err
	}
	return old.Close()
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
	tx, err := db.begin()
	if err != nil {
		return err
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

// begin waits for the instant without foreign readers and starts the
// transaction inside it.
func (db *DB) begin() (*bbolt.Tx, error) {
	gate, err := enterAlone(db.path, readerTimeout)
	if errors.Is(err, errBusy) {
		return nil, &LockedError{Path: db.path, Waited: readerTimeout}
	}
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", db.path, err)
	}
	defer gate.Close()
	tx, err := db.bolt.Begin(true)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", db.path, err)
	}
	return tx, nil
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
	if db.lock != nil {
		err = errors.Join(err, db.lock.Close())
	}
	if err != nil {
		return fmt.Errorf("closing %s: %w", db.path, err)
	}
	return nil
}
