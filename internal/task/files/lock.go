package files

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/gofrs/flock"

	"cairn/internal/text/walk"
)

// lockRetry is the interval between attempts to take the lock. Writers hold it for about a
// millisecond.
const lockRetry = time.Millisecond

// newLock returns the lock of a folder: flock(2) on the folder itself, which needs no lock
// file. Windows can lock only files.
func newLock(dir string) *flock.Flock {
	if runtime.GOOS == "windows" {
		return flock.New(filepath.Join(dir, ".cairn-write.lock"))
	}
	return flock.New(dir, flock.SetFlag(os.O_RDONLY))
}

// holder returns the id of the process that has locked the folder, according to /proc/locks
// of Linux. It returns 0 if the process is unknown.
func holder(dir string) int {
	info, err := os.Stat(dir)
	if err != nil {
		return 0
	}
	table, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	// "3: FLOCK  ADVISORY  WRITE 4711 fd:01:5373956 0 EOF"
	inode := fmt.Appendf(nil, ":%d", walk.Inode(info))
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
