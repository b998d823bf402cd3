package owner

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestLockHasOneOwner(t *testing.T) {
	path := t.TempDir() + "/lock"
	first, second := newLock(path), newLock(path)
	me := Holder{PID: 42, Command: "cairn index", StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if ok, err := first.tryOwn(me); !ok || err != nil {
		t.Fatalf("owning: %v, %v, want the lock", ok, err)
	}
	if ok, err := second.tryOwn(me); ok || err != nil {
		t.Errorf("owning a second time: %v, %v, want not", ok, err)
	}
	if second.free() {
		t.Error("the lock is free, want held")
	}
	if got := readHolder(path); got != me {
		t.Errorf("readHolder = %+v, want %+v", got, me)
	}
	if _, err := Lock(t.Context(), t.TempDir()+"/none", "test"); err == nil {
		t.Error("Lock in a missing folder succeeded")
	}
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	if got := readHolder(path); got != (Holder{}) {
		t.Errorf("readHolder after the release = %+v, want none", got)
	}
	if ok, err := second.tryOwn(me); !ok || err != nil {
		t.Errorf("owning after the release: %v, %v, want the lock", ok, err)
	}
}

// TestLockOnAFullDisk takes a lock in a file that cannot be written.
func TestLockOnAFullDisk(t *testing.T) {
	const full = "/dev/full" // every write fails for lack of space
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	path := t.TempDir() + "/lock"
	if err := os.Symlink(full, path); err != nil {
		t.Fatal(err)
	}
	l := newLock(path)
	defer l.file.Unlock()
	if ok, err := l.tryOwn(Holder{PID: 42}); !ok || err != nil {
		t.Errorf("owning: %v, %v, want the lock", ok, err)
	}
}

func TestLockErrorNamesThePID(t *testing.T) {
	e := &LockError{LockFile: "x/lock", Holder: Holder{PID: 42, Command: "cairn index"}, Doing: "indexing"}
	if !strings.Contains(e.Error(), "42") || !strings.Contains(e.Error(), "cairn index") {
		t.Errorf("message %q, want the pid and the command in it", e)
	}
	e.Silent = true
	if !strings.Contains(e.Error(), "kill -KILL 42") {
		t.Errorf("message %q, want the command that ends the owner", e)
	}
	kinds := Kinds{}
	if got, ok := errors.AsType[*LockError](kinds.decode(kinds.encode(e))); !ok || *got != *e {
		t.Errorf("over the wire: %+v, want %+v", got, e)
	}
}

// TestReadOnlyDirectory: where the directory of the lock cannot be written, the error says what
// the user can set, once.
func TestReadOnlyDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/"+LockFile, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	if os.WriteFile(dir+"/x", nil, 0o600) == nil {
		t.Skip("this user can write to a read-only directory")
	}
	serve := func(*Server) (Service, error) { return nil, errors.New("served") }
	f, err := Open(t.Context(), Options{Dir: dir, Make: func() error { return nil }, Serve: serve})
	if err == nil || f != nil || !strings.Contains(err.Error(), "; set CAIRN_HOME to") || strings.Contains(err.Error(), "truncate") {
		t.Errorf("Open: %v, want an error that names CAIRN_HOME", err)
	}
}
