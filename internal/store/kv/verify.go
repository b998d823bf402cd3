package kv

import (
	"fmt"
	"os"
	"path/filepath"

	"cairn/internal/base/checksum"
)

// Verify reads the whole file at its last commit and compares all checksums. A damaged
// snapshot is a problem too.
func (db *DB) Verify() (checksum.File, error) {
	found, err := db.check()
	if db.options.Snapshots && err == nil {
		found.Problems = append(found.Problems, damagedSnapshots(db.path)...)
	}
	return found, err
}

// check is Verify without the snapshots.
func (db *DB) check() (found checksum.File, err error) {
	err = db.View(func(tx *Tx) error {
		f, err := os.Open(db.path)
		if err != nil {
			return fmt.Errorf("verifying %s: %w", db.path, err)
		}
		defer f.Close()
		// Nothing changes the pages of this transaction until it ends.
		s := scanFile(f, false, nil)
		if len(s.problems) > 0 { // a commit may have changed the header during the scan
			s = scanFile(f, false, nil)
		}
		found = checksum.File{Name: filepath.Base(db.path), Bytes: int64(s.header.pages) * s.header.pageSize, Records: s.records, Problems: s.problems}
		return nil
	})
	return found, err
}

func damagedSnapshots(path string) (problems []string) {
	for _, name := range snapshotFiles(path) {
		if _, _, complete := readSnapshot(name); !complete {
			if _, err := os.Stat(name); err == nil {
				problems = append(problems, "the snapshot "+filepath.Base(name)+" is damaged")
			}
		}
	}
	return problems
}

// RemoveDamagedSnapshots removes the snapshots that Verify reports. The next change of the
// file writes a new one.
func RemoveDamagedSnapshots(path string) error {
	for _, name := range snapshotFiles(path) {
		if _, _, complete := readSnapshot(name); !complete {
			if err := os.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckPages reads all pages of a bbolt file of another package. It fails with a
// *CorruptError for damage on which bbolt would panic or loop.
func CheckPages(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if s := scanFile(f, true, nil); len(s.problems) > 0 {
		return &CorruptError{Path: path, Reason: s.problems[0]}
	}
	return nil
}
