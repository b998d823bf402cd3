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
	for _, c := range []struct{ records, batch, size, page, most int }{
		{14, 14, 200, 0, 512 << 10},
		{20_000, 500, 200, 0, 6 << 20},
		{1_000, 500, 2_400, 1 << 10, 3_400 << 10}, // 4,100 KB with pages of 4 KB
	} {
		path := filepath.Join(t.TempDir(), "a.db")
		db, err := Open(path, &Options{PageSize: c.page})
		if err != nil {
			t.Fatal(err)
		}
		value := []byte(strings.Repeat("v", c.size))
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
		if _, err := db.check(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > int64(c.most) {
			t.Errorf("%d records of some %d bytes take %d bytes, want at most %d", c.records, c.size+20, info.Size(), c.most)
		}
	}
}
