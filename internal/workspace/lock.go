package workspace

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

// LockError is returned when another process holds the folder and does not
// give way. Readers are not refused by it: they ask the owner.
type LockError struct {
	LockFile string `json:"lock_file"`
	Holder   Holder `json:"holder"`
	// Doing is what the holder is busy with, such as "indexing".
	Doing string `json:"doing"`
	// Silent is set when the holder does not answer: it is stopped, or hangs.
	Silent bool `json:"silent,omitempty"`
}

func (e *LockError) Error() string {
	who := "another process"
	if e.Holder.PID != 0 {
		who = fmt.Sprintf("process %d (%s, since %s)", e.Holder.PID, e.Holder.Command, e.Holder.StartedAt.Format(time.TimeOnly))
	}
	silent := ""
	if e.Silent {
		silent = " and does not answer"
	}
	return fmt.Sprintf("%s is %s this folder%s; %s", who, e.Doing, silent, e.Suggestion())
}

// Suggestion says what to do about it.
func (e *LockError) Suggestion() string {
	if e.Holder.PID == 0 {
		return "wait a moment and try again"
	}
	if e.Silent {
		return fmt.Sprintf("let it go on with `kill -CONT %d` if it was stopped, or end it with `kill -KILL %[1]d`: another process takes over by itself", e.Holder.PID)
	}
	return fmt.Sprintf("wait for it, follow it with `cairn status`, or stop it with `kill %d`", e.Holder.PID)
}

// fileLock is an advisory lock on a folder, of one owner or any number of
// readers. It is held by an open file, so the lock of a process that died is
// gone with it and there is nothing stale to remove.
//
// Two files are used. "lock" is the lock itself. "gate" keeps a stream of
// short readers from starving an owner: whoever wants to own the folder closes
// the gate first, readers pass it only while it is open, and those inside
// leave soon.
type fileLock struct {
	path       string
	lock, gate *flock.Flock
}

func newFileLock(dir string) *fileLock {
	path := filepath.Join(dir, "lock")
	return &fileLock{path: path, lock: flock.New(path), gate: flock.New(filepath.Join(dir, "gate"))}
}

// tryRead takes the lock as a reader if that is possible right now.
func (l *fileLock) tryRead() (bool, error) {
	ok, err := l.gate.TryRLock()
	if err != nil || !ok {
		return false, err
	}
	defer l.gate.Unlock()
	ok, err = l.lock.TryRLock()
	if err != nil || !ok {
		return false, err
	}
	return l.heldOrBack(), nil
}

// held reports whether the file that is locked is still the one at its path.
// Whoever removes the folder removes that file too, and the next one to come
// locks another.
func (l *fileLock) held() bool {
	mine, err := l.lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(l.path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return os.SameFile(mine, there)
}

// heldOrBack gives a lock back that was taken on a file just removed.
func (l *fileLock) heldOrBack() bool {
	if l.held() {
		return true
	}
	l.lock.Unlock()
	return false
}

// free reports whether the lock could be had right now. It is not taken.
func (l *fileLock) free(access Access) (bool, error) {
	try := l.tryRead
	if access == Owning {
		if ok, err := l.closeGate(); !ok || err != nil {
			return false, err
		}
		defer l.openGate()
		try = l.lock.TryLock
	}
	ok, err := try()
	if !ok || err != nil {
		return false, err
	}
	return true, l.lock.Unlock()
}

// closeGate keeps new readers out if nobody else is about to own the folder.
// openGate must follow.
func (l *fileLock) closeGate() (bool, error) { return l.gate.TryLock() }

func (l *fileLock) openGate() { l.gate.Unlock() }

// tryOwn takes the lock as the owner, behind a closed gate, and writes who it is.
func (l *fileLock) tryOwn(h Holder) (bool, error) {
	ok, err := l.lock.TryLock()
	if err != nil || !ok || !l.heldOrBack() {
		return false, err
	}
	text, err := json.Marshal(h)
	if err == nil {
		// The file is rewritten in place: a new file would not be the locked one.
		err = os.WriteFile(l.path, append(text, '\n'), 0o600)
	}
	if err != nil {
		l.lock.Unlock()
		return false, fmt.Errorf("writing the lock's holder: %w", err)
	}
	return true, nil
}

// release gives the lock back. The owner's name is erased first, so that it is
// never read beside a lock that nobody holds. A file that took the place of the
// locked one is another's.
func (l *fileLock) release() error {
	if l.lock.Locked() && l.held() {
		if err := os.Truncate(l.path, 0); err != nil {
			l.lock.Unlock()
			return err
		}
	}
	return l.lock.Unlock()
}

// readHolder returns who owns the folder; the zero Holder when that is unknown.
func readHolder(dir string) Holder {
	var h Holder
	text, err := os.ReadFile(filepath.Join(dir, "lock"))
	if err != nil || json.Unmarshal(text, &h) != nil {
		return Holder{}
	}
	return h
}

// retryEvery is how long a process waits before it looks at a lock again:
// short against the second a caller may wait, long against the microseconds a try takes.
const retryEvery = 10 * time.Millisecond

// poll calls try until it is done, fails, ctx ends or limit has passed; the
// last gives done == false.
func poll(ctx context.Context, limit time.Duration, try func() (bool, error)) (done bool, err error) {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		if done, err := try(); done || err != nil {
			return done, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
	}
}
