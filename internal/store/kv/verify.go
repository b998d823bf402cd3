package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"cairn/internal/base/health"
)

// Verify reads the whole file at its last commit and compares all checksums. A damaged
// snapshot is a problem too.
func (db *DB) Verify() (health.File, error) {
	found, err := db.check()
	if corrupt, ok := errors.AsType[*CorruptError](err); ok {
		found.Problems, err = append(found.Problems, corrupt.Reason), nil
	}
	if err != nil || !db.options.Snapshots {
		return found, err
	}
	s, err := readSnapshot(db.path)
	if s.damaged > 0 {
		found.Problems = append(found.Problems, "the snapshot "+filepath.Base(snapshotOf(db.path))+" is damaged")
	}
	return found, err
}

// check reads the whole file. It fails with a *CorruptError if the file is damaged.
func (db *DB) check() (found health.File, err error) {
	found.Name = filepath.Base(db.path)
	err = db.View(func(tx *Tx) error {
		f, err := os.Open(db.path)
		if err != nil {
			return fmt.Errorf("verifying %s: %w", db.path, err)
		}
		defer f.Close()
		h, before, err := readHeaders(f)
		if h.tx != uint64(tx.ID()) { // another transaction has ended since tx began
			h = before
		}
		if err == nil && h.tx == uint64(tx.ID()) { // nothing changes these pages until tx ends
			err = checkPages(f, h)
		}
		if err != nil {
			return &CorruptError{Path: db.path, Reason: err.Error()}
		}
		found.Bytes = tx.tx.Size()
		return tx.each(func(string, []byte, []byte) { found.Records++ })
	})
	return found, err
}

// each calls fn with every record. Records may not be missing.
func (t *Tx) each(fn func(bucket string, key, value []byte)) error {
	for _, name := range t.buckets() {
		b, err := t.Bucket(name)
		if err != nil {
			return err
		}
		b.ForEach(func(key, value []byte) bool {
			fn(name, key, value)
			return true
		})
	}
	return nil
}
