package keyword

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"cairn/internal/store/kv"
)

// rootFile is the file in which scorch lists the segments of each commit. A process that
// has the index open for writing keeps a lock on it.
const rootFile = "root.bolt"

// readPrefix begins the names of the folders that openCommit makes.
const readPrefix = "read-"

// openCommit opens the index in dir. A reader opens a folder with copies of the small files
// and links to the segments, which never change: so it finds the last commit while another
// process has the index open, and keeps it when that process removes segments. The folder is
// below dir, or among the temporary files if there is no room.
func openCommit(dir string, readOnly bool) (*Index, error) {
	if !readOnly {
		for _, name := range names(dir) {
			if strings.HasPrefix(name, readPrefix) { // of a reader that was killed
				_ = os.RemoveAll(filepath.Join(dir, name))
			}
		}
		root := filepath.Join(dir, rootFile)
		_, missing := os.Stat(root)
		x, err := open(dir, false)
		if errors.Is(missing, fs.ErrNotExist) && errors.Is(err, syscall.ENOSPC) {
			_ = os.Remove(root) // has only the beginning of its first pages
		}
		return x, err
	}
	if _, err := os.Stat(filepath.Join(dir, rootFile)); err != nil {
		return nil, err // scorch would create a missing index
	}
	x, err := openLinks(dir, dir)
	if errors.Is(err, syscall.ENOSPC) {
		x, err = openLinks(dir, "")
	}
	return x, err
}

// openLinks opens the last commit of the index in dir from a new folder below parent.
func openLinks(dir, parent string) (x *Index, err error) {
	files, err := os.MkdirTemp(parent, readPrefix)
	if err != nil {
		return nil, err
	}
	if err = linkCommit(dir, files); err == nil {
		x, err = open(files, true)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(files))
	}
	x.reading = files
	return x, nil
}

// linkCommit fills the folder files with the last commit of the index in dir. It copies
// stateFile first, which must not be newer than the commit.
func linkCommit(dir, files string) error {
	state, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(files, stateFile), state, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = copyRoot(dir, files)
	if _, changed := errors.AsType[*kv.CorruptError](err); changed {
		return fmt.Errorf("%w: %v", ErrCorrupt, err)
	} else if err != nil {
		return err
	}
	for _, name := range names(dir) {
		if filepath.Ext(name) != ".zap" {
			continue
		}
		segment, link := filepath.Join(dir, name), filepath.Join(files, name)
		err := os.Link(segment, link)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // some file systems have no hard links
			if segment, err = filepath.Abs(segment); err == nil {
				err = os.Symlink(segment, link)
			}
		}
		// A segment that was removed meanwhile is not of the last commit, or scorch misses it.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// copyRoot copies the root file, again if its owner writes it meanwhile.
func copyRoot(dir, files string) error {
	for try := 1; ; try++ {
		to := filepath.Join(files, rootFile)
		err := kv.Copy(filepath.Join(dir, rootFile), to)
		if _, changed := errors.AsType[*kv.CorruptError](err); !changed || try == 5 {
			return err
		}
		if err := os.Remove(to); err != nil {
			return err
		}
	}
}

// names returns the names of the files in dir, none if it cannot be read.
func names(dir string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
