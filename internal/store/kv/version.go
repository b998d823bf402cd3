package kv

import (
	"io/fs"
	"os"
)

// Version identifies the last commit of a file. A reader of a file that another process
// owns, see Options.Owned, compares versions: bbolt reuses the pages of a commit only after
// the following commit, so everything read while a version was current is of one commit.
type Version struct {
	path string
	info fs.FileInfo // nil if the file is missing or damaged
	last uint64      // transaction of the last commit
}

// VersionOf returns the version of the file at path.
func VersionOf(path string) Version {
	v := Version{path: path}
	f, err := os.Open(path)
	if err != nil {
		return v
	}
	defer f.Close()
	if last, _, err := readHeaders(f); err == nil {
		v.last = last.tx
		v.info, _ = f.Stat() // nil after an error
	}
	return v
}

// Current reports whether no process has committed to the file, or replaced it, since v.
func (v Version) Current() bool {
	now := VersionOf(v.path)
	if v.info == nil || now.info == nil {
		return v.info == now.info
	}
	return v.last == now.last && os.SameFile(v.info, now.info)
}

// Copy copies a bbolt file of another package, which another process may have open for
// writing, to a new file. It fails with a *CorruptError if that process commits meanwhile.
func Copy(from, to string) error {
	version := VersionOf(from)
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	if err != nil {
		return err
	}
	if !version.Current() {
		return &CorruptError{Path: from, Reason: "it was written while it was read"}
	}
	return nil
}
