package owner

import (
	"bytes"
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

// suspended reports whether the system says that the process is stopped, by a signal or a
// debugger. Only Linux says so.
func (h Holder) suspended() bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.PID))
	state := bytes.TrimPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" ")) // see proc_pid_stat(5)
	return len(state) > 0 && (state[0] == 'T' || state[0] == 't')
}

// LockError is returned if another process owns the folder and this process can neither
// use it nor become the owner.
type LockError struct {
	LockFile string `json:"lock_file"`
	Holder   Holder `json:"holder"`
	// Doing is the holder's work, such as "indexing".
	Doing string `json:"doing"`
	// Silent reports that the holder does not answer: it is suspended or hangs.
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
		return fmt.Sprintf("resume it with `kill -CONT %d` if it was suspended, or end it with `kill -KILL %[1]d`: another process then takes over", e.Holder.PID)
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

// tryOwn takes the lock if it is free, and writes h to the file if it can. It reports whether it
// has the lock.
func (l *lock) tryOwn(h Holder) (bool, error) {
	ok, err := l.file.TryLock()
	if err != nil || !ok {
		return false, err
	}
	if !l.held() { // the folder was removed before the lock was taken
		return false, l.file.Unlock()
	}
	if text, err := json.Marshal(h); err == nil {
		// The file is rewritten in place: a new file would not be the locked one. If that
		// fails, as on a full disk, the lock holds, and its holder is unknown to others.
		_ = os.WriteFile(l.path, append(text, '\n'), 0o600)
	}
	return true, nil
}

// free reports whether no process holds the lock.
func (l *lock) free() bool {
	ok, err := l.file.TryLock()
	if ok {
		l.file.Unlock()
	}
	return ok && err == nil
}

// held reports whether the locked file is still the file at its path. It is not after the
// folder was removed: the next owner creates and locks another file.
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

// release releases the lock. It erases the holder first, so that the file never names a
// process that does not hold the lock. It does not touch a file that has replaced the
// locked one.
func (l *lock) release() error {
	if l.file.Locked() && l.held() {
		_ = os.Truncate(l.path, 0) // where that fails, tryOwn has written no holder either
	}
	return l.file.Unlock()
}

// readHolder returns the owner that the file at path names, or the zero Holder.
func readHolder(path string) Holder {
	var h Holder
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &h) != nil {
		return Holder{}
	}
	return h
}

// lockLimit bounds how long Lock waits for an owner to end.
const lockLimit = 1500 * time.Millisecond

// Lock takes the owner's lock of dir for a process that changes the files but serves no
// clients. It fails with a *LockError if the folder has an owner. release releases the
// lock.
func Lock(ctx context.Context, dir, command string) (release func() error, err error) {
	l := newLock(filepath.Join(dir, LockFile))
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
