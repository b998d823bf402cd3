//go:build unix

package files

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// tryLock takes the lock of a folder: flock(2) on the folder itself, so that
// no lock file lies about, and the lock of a process that died is gone with it.
func tryLock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errBusy
		}
		return nil, err
	}
	return func() { f.Close() }, nil
}

// holder finds who has locked the folder where the system tells, in
// /proc/locks of Linux; 0 otherwise.
func holder(dir string) int {
	info, err := os.Stat(dir)
	if err != nil {
		return 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	table, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	// "3: FLOCK  ADVISORY  WRITE 4711 fd:01:5373956 0 EOF"
	inode := fmt.Appendf(nil, ":%d", st.Ino)
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) >= 6 && string(f[1]) == "FLOCK" && bytes.HasSuffix(f[5], inode) {
			if pid, err := strconv.Atoi(string(f[4])); err == nil && pid > 0 {
				return pid
			}
		}
	}
	return 0
}
