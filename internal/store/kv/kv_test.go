package kv

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func open(t *testing.T, path string, o *Options) *DB {
	t.Helper()
	db, err := Open(path, o)
	if err != nil {
		t.Fatalf("Open(%s): %v", path, err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func put(t *testing.T, db *DB, key, value string) {
	t.Helper()
	err := db.Update(func(tx *Tx) error {
		b, err := tx.Bucket("b")
		if err != nil {
			return err
		}
		return b.Put([]byte(key), []byte(value))
	})
	if err != nil {
		t.Fatalf("putting %q: %v", key, err)
	}
}

func get(t *testing.T, db *DB, key string) string {
	t.Helper()
	var value string
	err := db.View(func(tx *Tx) error {
		b, err := tx.Bucket("b")
		if err != nil {
			return err
		}
		value = string(b.Get([]byte(key)))
		return nil
	})
	if err != nil {
		t.Fatalf("getting %q: %v", key, err)
	}
	return value
}

func TestBucket(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "new", "kv.db"), nil)
	for _, k := range []string{"b/2", "a/1", "b/1", "c"} {
		put(t, db, k, "v"+k)
	}
	list := func(walk func(*Bucket, func(k, v []byte) bool)) string {
		var got []string
		if err := db.View(func(tx *Tx) error {
			b, err := tx.Bucket("b")
			walk(b, func(k, v []byte) bool {
				got = append(got, string(k)+"="+string(v))
				return string(k) != "b/2"
			})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return strings.Join(got, " ")
	}
	if got, want := list((*Bucket).ForEach), "a/1=va/1 b/1=vb/1 b/2=vb/2"; got != want {
		t.Errorf("ForEach until b/2: %q, want %q", got, want)
	}
	prefix := list(func(b *Bucket, fn func(k, v []byte) bool) { b.Prefix([]byte("a"), fn) })
	if want := "a/1=va/1"; prefix != want {
		t.Errorf("Prefix(a): %q, want %q", prefix, want)
	}
	if seek := list(func(b *Bucket, fn func(k, v []byte) bool) { b.Seek([]byte("b/11"), fn) }); seek != "b/2=vb/2" {
		t.Errorf("Seek(b/11): %q, want b/2", seek)
	}
}

func TestUpdateFailedLeavesNothing(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "kv.db"), nil)
	put(t, db, "k", "old")
	boom := errors.New("boom")
	err := db.Update(func(tx *Tx) error {
		b, err := tx.Bucket("b")
		if err != nil {
			return err
		}
		if err := b.Put([]byte("k"), []byte("new")); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Errorf("Update: %v, want %v", err, boom)
	}
	if got := get(t, db, "k"); got != "old" {
		t.Errorf("after a failed Update: %q, want %q", got, "old")
	}
}

func TestViewCannotWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv.db")
	db := open(t, path, nil)
	put(t, db, "k", "v")
	for _, name := range []string{"b", "absent"} {
		err := db.View(func(tx *Tx) error {
			b, err := tx.Bucket(name)
			if err != nil {
				return err
			}
			return b.Put([]byte("k"), nil)
		})
		if err == nil {
			t.Errorf("Put in a View of %q succeeded", name)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	ro := open(t, path, &Options{ReadOnly: true})
	if err := ro.Update(func(*Tx) error { return nil }); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Update of a read-only database: %v, want %v", err, ErrReadOnly)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "absent"), &Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read-only Open of an absent file: %v, want fs.ErrNotExist", err)
	}
	whole := filepath.Join(dir, "whole")
	db := open(t, whole, nil)
	for i := range 20 {
		put(t, db, fmt.Sprint(i), strings.Repeat("v", 5000))
	}
	db.Close()
	content, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"text":      []byte("# Not a database\n"),
		"long text": bytes.Repeat([]byte("not a database\n"), 10000),
		"cut short": content[:8*os.Getpagesize()],
		"metas":     append(make([]byte, 2*os.Getpagesize()), content[2*os.Getpagesize():]...),
	} {
		path := filepath.Join(dir, "bad "+name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{false, true} {
			db, err := Open(path, &Options{ReadOnly: readOnly})
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) {
				t.Errorf("Open(%s, read-only %v): %v, want *CorruptError", name, readOnly, err)
			}
			if err == nil {
				db.Close()
			}
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, content) {
			t.Errorf("Open(%s) changed the file (%v)", name, err)
		}
	}
}

func TestDamagedPageIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv.db")
	db := open(t, path, nil)
	for i := range 300 {
		put(t, db, fmt.Sprintf("%05d", i), strings.Repeat("v", 200))
	}
	db.Close()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	for i := 2 * page; i < len(content); i++ {
		content[i] = byte(i * 31)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(path, nil)
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) {
		t.Errorf("Open of a file with damaged pages: %v, want *CorruptError", err)
	}
}

func TestClosed(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "kv.db"), nil)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if err := db.View(func(*Tx) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("View after Close: %v, want %v", err, ErrClosed)
	}
	if err := db.Update(func(*Tx) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("Update after Close: %v, want %v", err, ErrClosed)
	}
}

func TestSecondWriterTimesOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv.db")
	open(t, path, nil)
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		_, err := Open(path, &Options{Timeout: 50 * time.Millisecond})
		if err == nil || !strings.Contains(err.Error(), "in use by another process (waited 50ms)") {
			t.Fatalf("second writer: %v, want that another process uses the file", err)
		}
		if took := time.Since(started); took > time.Second {
			t.Errorf("second writer waited %v, want about 50ms", took)
		}
	})
}

// TestReaderProcesses runs readers in processes of their own while this one
// writes pairs of equal values over and over, growing and shrinking the file. A
// reader that saw pages of two commits would find a pair that differs.
func TestReaderProcesses(t *testing.T) {
	if path := os.Getenv("KV_READER"); path != "" {
		readPairs(path)
		return
	}
	path := filepath.Join(t.TempDir(), "kv.db")
	db := NewFile(path, &FileOptions{Shared: true})
	writePairs(t, db, 0)
	var readers []*exec.Cmd
	var outputs []*bytes.Buffer
	for range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=TestReaderProcesses$")
		cmd.Env = append(os.Environ(), "KV_READER="+path)
		out := new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // after a failure it would read on
		readers, outputs = append(readers, cmd), append(outputs, out)
	}
	for round := 1; round <= 100; round++ {
		writePairs(t, db, round)
	}
	last := open(t, path, &Options{Timeout: sharedTimeout})
	put(t, last, "done", "yes")
	last.Close()
	for i, cmd := range readers {
		if err := cmd.Wait(); err != nil {
			t.Errorf("reader %d: %v\n%s", i, err, outputs[i])
		}
	}
}

func writePairs(t *testing.T, db *File, round int) {
	t.Helper()
	err := db.Update(func(tx *Tx) error {
		b, err := tx.Bucket("pairs")
		if err != nil {
			return err
		}
		value := []byte(strings.Repeat(fmt.Sprintf("%08d", round), 1+round*37%600))
		for i := range 40 {
			for _, side := range "ab" {
				if err := b.Put(fmt.Appendf(nil, "%c%d", side, i), value); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
}

// readPairs reads until the writer is done and exits with 1 on a torn view.
func readPairs(path string) {
	db := NewFile(path, &FileOptions{Shared: true})
	var err error
	for done := false; err == nil && !done; {
		err = db.View(func(tx *Tx) error {
			pairs, err := tx.Bucket("pairs")
			if err != nil {
				return err
			}
			first := pairs.Get([]byte("a0"))
			for i := range 40 {
				for _, side := range "ab" {
					if got := pairs.Get(fmt.Appendf(nil, "%c%d", side, i)); !bytes.Equal(got, first) {
						return fmt.Errorf("%c%d is of another commit than a0", side, i)
					}
				}
			}
			b, err := tx.Bucket("b")
			done = b.Get([]byte("done")) != nil
			return err
		})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
