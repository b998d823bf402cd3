package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Holder is the process that owns a folder.
type Holder struct {
	PID       int       `json:"pid"`
	Command   string    `json:"command"` // such as "cairn index"
	StartedAt time.Time `json:"started_at"`
}

// LockError is returned when another process owns the folder and the caller can
// neither ask it nor take its place.
type LockError struct {
	LockFile string `json:"lock_file"`
	Holder   Holder `json:"holder"`
	// Doing is what the holder is busy with, such as "indexing".
	Doing string `json:"doing"`
	// Silent is set when the holder does not answer: it was stopped, or hangs.
	Silent bool `json:"silent,omitempty"`
}

func (e *LockError) Error() string {
	holder, silent := "another process", ""
	if e.Holder.PID != 0 {
		holder = fmt.Sprintf("process %d (%s, since %s)", e.Holder.PID, e.Holder.Command, e.Holder.StartedAt.Format(time.TimeOnly))
	}
	if e.Silent {
		silent = " and does not answer"
	}
	return fmt.Sprintf("%s is %s this folder%s; %s", holder, e.Doing, silent, e.Suggestion())
}

// Suggestion names the commands that resolve the conflict.
func (e *LockError) Suggestion() string {
	switch {
	case e.Holder.PID == 0:
		return "wait a moment and try again"
	case e.Silent:
		return fmt.Sprintf("let it go on with `kill -CONT %d` if it was stopped, or end it with `kill -KILL %[1]d`: another process takes over by itself", e.Holder.PID)
	}
	return fmt.Sprintf("wait for it, follow it with `cairn status`, or stop it with `kill %d`", e.Holder.PID)
}

// lock is an advisory lock on a file that names its holder. The system releases it
// when the process ends, so no lock is ever stale.
type lock struct {
	path string
	file *flock.Flock
}

func newLock(path string) *lock { return &lock{path: path, file: flock.New(path)} }

// tryOwn takes the lock if it is free, and writes h to the file.
func (l *lock) tryOwn(h Holder) (bool, error) {
	ok, err := l.file.TryLock()
	if err != nil || !ok {
		return false, err
	}
	if !l.held() { // the folder was removed in between
		return false, l.file.Unlock()
	}
	text, err := json.Marshal(h)
	if err == nil {
		// The file is rewritten in place: a new file would not be the locked one.
		err = os.WriteFile(l.path, append(text, '\n'), 0o600)
	}
	if err != nil {
		l.file.Unlock()
		return false, fmt.Errorf("writing the lock's holder: %w", err)
	}
	return true, nil
}

// free reports whether no process holds the lock. It does not take it.
func (l *lock) free() bool {
	ok, err := l.file.TryLock()
	if ok {
		l.file.Unlock()
	}
	return ok && err == nil
}

// held reports whether the locked file is still the one at its path. Removing the
// folder removes the file, and the next owner locks another.
func (l *lock) held() bool {
	mine, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(l.path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return os.SameFile(mine, there)
}

// release gives the lock back. It erases the holder first, so that the file never
// names a process that does not hold the lock. It leaves a file alone that
// replaced the locked one.
func (l *lock) release() error {
	var err error
	if l.file.Locked() && l.held() {
		err = os.Truncate(l.path, 0)
	}
	return errors.Join(err, l.file.Unlock())
}

// readHolder returns the owner that the file at path names; the zero Holder for none.
func readHolder(path string) Holder {
	var h Holder
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &h) != nil {
		return Holder{}
	}
	return h
}

// lockLimit bounds the wait of Lock for an owner that is about to end.
const lockLimit = 1500 * time.Millisecond

// Lock takes the lock of the owner of dir, in the file name, for a process that
// changes the files without answering others. It fails with a *LockError when the
// folder has an owner. release gives it back.
func Lock(ctx context.Context, dir, name, command string) (release func() error, err error) {
	l := newLock(filepath.Join(dir, name))
	me := Holder{PID: os.Getpid(), Command: command, StartedAt: time.Now().UTC().Truncate(time.Second)}
	for deadline := time.Now().Add(lockLimit); ; {
		ok, err := l.tryOwn(me)
		if err != nil {
			return nil, err
		}
		if ok {
			return l.release, nil
		}
		if time.Now().After(deadline) {
			return nil, &LockError{LockFile: l.path, Holder: readHolder(l.path), Doing: "using"}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retryEvery):
		}
	}
}
