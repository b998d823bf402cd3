package kv

import (
	"fmt"
	"os"
)

// Check is what Verify has read and found.
type Check struct {
	Records  int      `json:"records"`
	Bytes    int64    `json:"bytes"`
	Problems []string `json:"problems,omitempty"`
}

// Verify reads the whole file as of now and compares all checksums. The file of an
// earlier version has none, so that only its pages are checked.
func (db *DB) Verify() (c Check, err error) {
	err = db.View(func(tx *Tx) error {
		f, err := os.Open(db.path)
		if err != nil {
			return fmt.Errorf("verifying %s: %w", db.path, err)
		}
		defer f.Close()
		// The pages of this transaction stay as they are until it ends.
		s := scanFile(f, db.plain, nil)
		if len(s.problems) > 0 { // a commit may have written the header meanwhile
			s = scanFile(f, db.plain, nil)
		}
		c = Check{Records: s.records, Bytes: s.size, Problems: s.problems}
		return nil
	})
	return c, err
}
