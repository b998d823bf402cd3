package kv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestVersion: while an owner has the file open and commits, others read it without its
// lock. What they read while a version is current is of one commit.
func TestVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv.db")
	if v := VersionOf(path); !v.Current() {
		t.Error("the version of a missing file is not current")
	}
	writer := open(t, path, &Options{Owned: true})
	pairs := func(round int) {
		if err := writer.Update(func(tx *Tx) error {
			b, err := tx.Bucket("pairs")
			for i := 0; err == nil && i < 40; i++ {
				err = b.Put(fmt.Append(nil, i), bytes.Repeat(fmt.Append(nil, round, " "), 20+round%50))
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	pairs(0)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			whole := 0
			for ended := false; !ended || whole == 0; {
				select {
				case <-done:
					ended = true
				default:
				}
				v := VersionOf(path)
				torn, err := torn(path)
				if !v.Current() {
					continue
				}
				if whole++; torn || err != nil {
					t.Errorf("a current version is torn: %v, %v", torn, err)
				}
			}
		})
	}
	for round := range 300 {
		pairs(round)
	}
	close(done)
	readers.Wait()

	v := VersionOf(path)
	if put(t, writer, "one", "more"); v.Current() {
		t.Error("a version is current after a commit")
	}
	v = VersionOf(path)
	if err := os.Rename(path, path+".old"); err != nil || v.Current() {
		t.Errorf("the version of a removed file is current (%v)", err)
	}
	content, err := os.ReadFile(path + ".old")
	if err := errors.Join(err, os.WriteFile(path, content, 0o600)); err != nil || v.Current() {
		t.Errorf("the version of a replaced file is current (%v)", err)
	}
}

// torn reports whether the pairs of the file at path are of several commits.
func torn(path string) (torn bool, err error) {
	db, err := Open(path, &Options{ReadOnly: true, Owned: true})
	if err != nil {
		return false, err
	}
	defer db.Close()
	return torn, db.View(func(tx *Tx) error {
		b, err := tx.Bucket("pairs")
		first := b.Get([]byte("0"))
		for i := range 40 {
			torn = torn || !bytes.Equal(b.Get(fmt.Append(nil, i)), first)
		}
		return err
	})
}
