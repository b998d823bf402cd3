//go:build unix

package kv

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// errBusy says that a lock was not had in time.
var errBusy = errors.New("busy")

const turnstileSuffix = ".gate"

// lockWriter takes the writer's lock, waiting at most timeout. The lock goes
// with the process: nothing is left to clean up after a crash.
func lockWriter(path string, timeout time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	return lockWithin(f, 10*time.Millisecond, timeout)
}

// enter takes the gate for one reader of another process. The turnstile before
// it lets nobody in while a writer waits, which readers that overlap without a
// pause would otherwise keep waiting for ever. It waits at most timeout: a writer
// may have been stopped inside.
func enter(path string, timeout time.Duration) (*os.File, error) {
	turnstile, err := os.Open(path + turnstileSuffix)
	if err == nil {
		defer turnstile.Close()
		err = lockFor(turnstile, false, timeout)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // absent: no writer was ever here to wait for
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := lockFor(f, false, timeout); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// enterAlone takes the gate when no foreign reader is inside, waiting at most timeout.
func enterAlone(path string, timeout time.Duration) (*os.File, error) {
	turnstile, err := holdTurnstile(path, timeout)
	if err != nil {
		return nil, err
	}
	defer turnstile.Close()
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return lockWithin(f, 50*time.Microsecond, timeout)
}

// holdTurnstile keeps further readers of other processes out until it is closed,
// waiting at most timeout for another writer to do so.
func holdTurnstile(path string, timeout time.Duration) (*os.File, error) {
	turnstile, err := os.OpenFile(path+turnstileSuffix, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	return lockWithin(turnstile, 50*time.Microsecond, timeout)
}

func lockWithin(f *os.File, pause, timeout time.Duration) (*os.File, error) {
	for end := time.Now().Add(timeout); ; time.Sleep(pause) {
		err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, err
		}
		if time.Now().After(end) {
			f.Close()
			return nil, errBusy
		}
	}
}

// canLock says that locks end with the process that holds them.
const canLock = true

// lockFor locks an open file, waiting at most timeout.
func lockFor(f *os.File, exclusive bool, timeout time.Duration) error {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	for end := time.Now().Add(timeout); ; time.Sleep(50 * time.Microsecond) {
		err := flock(f, how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(end) {
			return errBusy
		}
	}
}

// unlock gives back a lock, such as the one bbolt took in Open.
func unlock(f *os.File) error { return flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

// sameFile reports whether both handles lead to one file: a rebuilt database
// is a new file under the old name.
func sameFile(a, b *os.File) (bool, error) {
	x, err := a.Stat()
	if err != nil {
		return false, err
	}
	y, err := b.Stat()
	if err != nil {
		return false, err
	}
	return os.SameFile(x, y), nil
}
