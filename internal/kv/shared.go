package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// sharedTimeout is how long a write waits for that of another process. A large
// import takes seconds.
const sharedTimeout = 20 * time.Second

// Shared is a file that many processes write, one at a time: each has it open for
// writing only during an Update. It is safe for concurrent use.
type Shared struct {
	path    string
	prepare func() error // creates the folder

	writing sync.Mutex // one writer in this process

	mu     sync.Mutex
	reader *DB // nil until the file exists
	closed bool
}

// NewShared returns the file at path, which the first Update creates in the folder
// that prepare makes.
func NewShared(path string, prepare func() error) *Shared {
	return &Shared{path: path, prepare: prepare}
}

// View calls fn as DB.View does, unless there is no file yet.
func (f *Shared) View(fn func(*Tx) error) error {
	reader, err := f.open()
	if reader == nil || err != nil {
		return err
	}
	return reader.View(fn)
}

func (f *Shared) open() (*DB, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	if f.reader != nil {
		return f.reader, nil
	}
	// An empty file is one that another process is about to fill.
	if info, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, nil
	}
	reader, err := Open(f.path, &Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	f.reader = reader
	return reader, nil
}

// Update calls fn as DB.Update does.
func (f *Shared) Update(fn func(*Tx) error) (err error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := f.prepare(); err != nil {
		return err
	}
	db, err := Open(f.path, &Options{Timeout: sharedTimeout})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := db.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("closing after a write: %w", closeErr)
		}
	}()
	return db.Update(fn)
}

// Close closes the file.
func (f *Shared) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.reader == nil {
		return nil
	}
	err := f.reader.Close()
	f.reader = nil
	return err
}
