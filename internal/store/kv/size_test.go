package kv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSizeOfFile: a file takes little more room than its records, as its size and on disk,
// when the records come in order.
func TestSizeOfFile(t *testing.T) {
	for _, c := range []struct{ records, batch, most int }{{14, 14, 512 << 10}, {20_000, 500, 6 << 20}} {
		path := filepath.Join(t.TempDir(), "a.db")
		db, err := Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		value := []byte(strings.Repeat("v", 200))
		for from := 0; from < c.records; from += c.batch {
			err := db.Update(func(tx *Tx) error {
				b, err := tx.Bucket("files")
				for i := from; i < from+c.batch && err == nil; i++ {
					err = b.Put(fmt.Appendf(nil, "folder/%06d", i), value)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > int64(c.most) {
			t.Errorf("%d records of some 220 bytes take %d bytes, want at most %d", c.records, info.Size(), c.most)
		}
	}
}
