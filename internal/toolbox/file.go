package toolbox

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"cairn/internal/base/owner"
	"cairn/internal/store/kv"
)

// file is a file of buckets. The first use opens it, and the first write creates it.
type file struct {
	path string

	mu     sync.Mutex
	db     *kv.DB // nil until it is open
	closed bool
}

// open returns the file. It returns nil if the file does not exist and create is false.
func (f *file) open(create bool) (*kv.DB, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, owner.ErrEnded
	}
	if f.db != nil {
		return f.db, nil
	}
	if _, err := os.Stat(f.path); !create && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	db, err := kv.Open(f.path, &kv.Options{Snapshots: true})
	f.db = db
	return db, err
}

// View implements records.DB.
func (f *file) View(fn func(*kv.Tx) error) error {
	db, err := f.open(false)
	if db == nil || err != nil {
		return err
	}
	return db.View(fn)
}

// Update implements records.DB.
func (f *file) Update(fn func(*kv.Tx) error) error {
	db, err := f.open(true)
	if err != nil {
		return err
	}
	return db.Update(fn)
}

func (f *file) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.db == nil {
		return nil
	}
	return f.db.Close()
}
