//go:build !unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// staleAfter is when a lock file is taken to be a crashed writer's: writers
// hold it for milliseconds.
const staleAfter = time.Minute

// tryLock takes the lock of a folder by making a file in it, which is all that
// works everywhere.
func tryLock(dir string) (unlock func(), err error) {
	name := filepath.Join(dir, ".cairn-write.lock")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		f.Close()
		return func() { os.Remove(name) }, nil
	}
	if info, serr := os.Stat(name); serr == nil && time.Since(info.ModTime()) > staleAfter {
		os.Remove(name)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission) {
		return nil, errBusy
	}
	return nil, err
}

func holder(string) int { return 0 }
