package kv

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// TestImageIsAFile does the same at random to an image and to a file.
func TestImageIsAFile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	db, im := open(t, filepath.Join(t.TempDir(), "kv.db"), nil), &Image{}
	undone := errors.New("undone")
	for round := range 200 {
		seed := rng.Uint64()
		change := func(tx *Tx) error {
			rng := rand.New(rand.NewPCG(seed, 0))
			for range rng.IntN(20) {
				b, err := tx.Bucket(fmt.Sprint("bucket", rng.IntN(3)))
				if err != nil {
					return err
				}
				key := []byte(fmt.Sprint("key", rng.IntN(40)))
				switch rng.IntN(6) {
				case 0:
					err = b.Delete(key)
				case 1:
					n, err := b.NextSequence()
					if err != nil {
						return err
					}
					if err := b.Put(key, fmt.Append(nil, n)); err != nil {
						return err
					}
				default:
					err = b.Put(key, make([]byte, rng.IntN(30)))
				}
				if err != nil {
					return err
				}
			}
			if rng.IntN(8) == 0 {
				if err := tx.Drop(fmt.Sprint("bucket", rng.IntN(3))); err != nil {
					return err
				}
			}
			if rng.IntN(8) == 0 {
				return undone
			}
			return nil
		}
		before := all(t, im)
		next, err := im.Update(change)
		if errDB := db.Update(change); !errors.Is(errDB, err) {
			t.Fatalf("round %d: %v, of the file %v", round, err, errDB)
		}
		if got := all(t, im); got != before {
			t.Fatalf("round %d changed the image it began from:\n%s\nwant:\n%s", round, got, before)
		}
		if err == nil {
			im = next
		}
		packed, err := im.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if im, err = ReadImage(packed); err != nil {
			t.Fatal(err)
		}
		if got, want := all(t, im), all(t, db); got != want {
			t.Fatalf("round %d:\n%s\nthe file:\n%s", round, got, want)
		}
	}
}

// all is all that a transaction shows.
func all(t *testing.T, db interface{ View(func(*Tx) error) error }) string {
	t.Helper()
	var s strings.Builder
	err := db.View(func(tx *Tx) error {
		for _, name := range tx.Buckets() {
			b, err := tx.Bucket(name)
			if err != nil {
				return err
			}
			b.ForEach(func(key, value []byte) bool {
				fmt.Fprintf(&s, "%s/%s=%x\n", name, key, value)
				return bytes.Equal(b.Get(key), value)
			})
			b.Prefix([]byte("key1"), func(key, _ []byte) bool { fmt.Fprintf(&s, "%s,", key); return len(key) < 5 })
			b.Seek([]byte("key3"), func(key, _ []byte) bool { fmt.Fprintf(&s, "%s;", key); return true })
		}
		b, err := tx.Bucket("nowhere")
		if err != nil || b.Get([]byte("x")) != nil || !errors.Is(b.Put([]byte("x"), nil), ErrReadOnly) {
			t.Error("a view of a bucket that is absent: not empty, or written to")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.String()
}

func TestImageRefuses(t *testing.T) {
	im, err := (&Image{}).Update(func(tx *Tx) error {
		b, err := tx.Bucket("b")
		if err != nil {
			return err
		}
		for _, key := range []int{0, MaxKey + 1} {
			if b.Put(make([]byte, key), nil) == nil {
				t.Errorf("a key of %d bytes is taken", key)
			}
		}
		return b.Put([]byte("key"), bytes.Repeat([]byte("value "), 1000))
	})
	if err != nil {
		t.Fatal(err)
	}
	err = im.View(func(tx *Tx) error {
		b, err := tx.Bucket("b")
		if err != nil {
			return err
		}
		_, errSequence := b.NextSequence()
		for _, err := range []error{b.Put([]byte("a"), nil), b.Delete([]byte("key")), tx.Drop("b"), errSequence} {
			if !errors.Is(err, ErrReadOnly) {
				t.Errorf("writing in a view: %v, want %v", err, ErrReadOnly)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	packed, err := im.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for n := range packed {
		if _, err := ReadImage(packed[:n]); err == nil {
			t.Fatalf("%d of %d bytes are taken for the whole", n, len(packed))
		}
		broken := bytes.Clone(packed)
		broken[n] ^= 0x20
		// Some bits of gzip's say nothing of the contents.
		if read, err := ReadImage(broken); err == nil && all(t, read) != all(t, im) {
			t.Fatalf("a changed byte %d of %d is not noticed", n, len(packed))
		}
	}
}
