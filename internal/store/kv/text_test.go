package kv

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestText stores texts of several sizes, and reads texts whose stored form is wrong.
func TestText(t *testing.T) {
	db, err := Open(filepath.Join(t.TempDir(), "a.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	texts := map[string]string{
		"empty": "", "short": "a", "words": strings.Repeat("the same words ", 1000),
		"limit": strings.Repeat("x", largestCompressed), "large": strings.Repeat("line\n", largestCompressed),
	}
	err = db.Update(func(tx *Tx) error {
		b, err := tx.Bucket("texts")
		for key, text := range texts {
			err = errors.Join(err, b.PutText([]byte(key), []byte(text)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(func(tx *Tx) error {
		b, err := tx.Bucket("texts")
		for key, want := range texts {
			if got := b.Text([]byte(key)); got == nil || string(got) != want || b.TextLen([]byte(key)) != len(want) {
				t.Errorf("%s: %d bytes, length %d, want %d", key, len(got), b.TextLen([]byte(key)), len(want))
			}
		}
		if n := len(b.Get([]byte("words"))); n > 1500 {
			t.Errorf("15,000 bytes of the same words take %d", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range [][]byte{{}, {2, 'a'}, {compressed}, {compressed, 5, 0}, append([]byte{compressed, 0xff, 0xff, 0xff, 0x0f}, bytes.Repeat([]byte{'a'}, 99)...)} {
		err = db.Update(func(tx *Tx) error {
			b, err := tx.Bucket("texts")
			return errors.Join(err, b.Put([]byte("wrong"), value))
		})
		if err != nil {
			t.Fatal(err)
		}
		err := db.View(func(tx *Tx) error {
			b, err := tx.Bucket("texts")
			b.Text([]byte("wrong"))
			return err
		})
		if _, ok := errors.AsType[*CorruptError](err); !ok {
			t.Errorf("the stored text %q: %v, want a *CorruptError", value, err)
		}
	}
}
