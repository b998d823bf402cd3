package workspace

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestLockOneOwnerManyReaders(t *testing.T) {
	dir := t.TempDir()
	first, second, owner := newFileLock(dir), newFileLock(dir), newFileLock(dir)
	for i, l := range []*fileLock{first, second} {
		if ok, err := l.tryRead(); !ok || err != nil {
			t.Fatalf("reader %d: %v, %v, want the lock", i, ok, err)
		}
	}
	me := Holder{PID: 42, Command: "cairn index", StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if ok, err := owner.closeGate(); !ok || err != nil {
		t.Fatalf("closing the gate: %v, %v", ok, err)
	}
	if ok, err := owner.tryOwn(me); ok || err != nil {
		t.Fatalf("owning beside readers: %v, %v, want not yet", ok, err)
	}
	late := newFileLock(dir)
	if ok, err := late.tryRead(); ok || err != nil {
		t.Fatalf("reading past a closed gate: %v, %v, want not yet", ok, err)
	}
	first.release()
	second.release()
	if ok, err := owner.tryOwn(me); !ok || err != nil {
		t.Fatalf("owning: %v, %v, want the lock", ok, err)
	}
	owner.openGate()
	if ok, err := late.tryRead(); ok || err != nil {
		t.Fatalf("reading beside the owner: %v, %v, want not", ok, err)
	}
	if got := readHolder(dir); got != me {
		t.Errorf("readHolder = %+v, want %+v", got, me)
	}
	if err := owner.release(); err != nil {
		t.Fatal(err)
	}
	if got := readHolder(dir); got != (Holder{}) {
		t.Errorf("readHolder after the release = %+v, want nobody", got)
	}
	if ok, err := late.tryRead(); !ok || err != nil {
		t.Errorf("reading after the release: %v, %v, want the lock", ok, err)
	}
}

func TestPoll(t *testing.T) {
	n := 0
	done, err := poll(t.Context(), time.Minute, func() (bool, error) { n++; return n == 3, nil })
	if !done || err != nil || n != 3 {
		t.Errorf("poll = %v, %v after %d tries, want done after 3", done, err, n)
	}
	if done, err := poll(t.Context(), 0, func() (bool, error) { return false, nil }); done || err != nil {
		t.Errorf("poll past its limit = %v, %v, want not done", done, err)
	}
	broken := errors.New("broken")
	if _, err := poll(t.Context(), time.Minute, func() (bool, error) { return false, broken }); err != broken {
		t.Errorf("poll = %v, want the error of the try", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := poll(ctx, time.Minute, func() (bool, error) { return false, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("poll with a cancelled context = %v, want context.Canceled", err)
	}
}

func TestLockErrorNamesThePID(t *testing.T) {
	e := &LockError{LockFile: "x/lock", Holder: Holder{PID: 42, Command: "cairn index"}, Doing: "indexing"}
	if !strings.Contains(e.Error(), "42") || !strings.Contains(e.Error(), "cairn index") {
		t.Errorf("message %q, want the pid and the command in it", e)
	}
}
