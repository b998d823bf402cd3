// Package atomicfile puts a new file in the place of an old one in one step: who
// reads it, and who finds it after a crash, sees one or the other, whole.
//
// Libraries for this leave out the last step, to make the folder durable, without
// which the old file can be back after a power failure.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File is a file that is being written in the folder of the file it is to replace.
type File struct {
	*os.File
	path string
	mode fs.FileMode
	over bool // committed or discarded
}

// Create begins a file that Commit gives the name path and the permissions mode.
// Discard must follow in any case. Where path is a link, the link is replaced.
func Create(path string, mode fs.FileMode) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path, mode: mode}, nil
}

// Commit makes the content durable and puts it in place. On an error before the
// last step, which makes the name durable, the old file is as it was.
func (f *File) Commit() error {
	if err := errors.Join(f.Chmod(f.mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), f.path); err != nil {
		return err
	}
	f.over = true
	return SyncDir(filepath.Dir(f.path))
}

// Discard removes what was written, unless it is in place.
func (f *File) Discard() {
	if !f.over {
		f.over = true
		f.Close()
		os.Remove(f.Name())
	}
}

// Write replaces the file at path by content.
func Write(path string, content []byte, mode fs.FileMode) error {
	f, err := Create(path, mode)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(content); err != nil {
		return err
	}
	return f.Commit()
}

// RemoveLeftovers removes the temporary files that killed processes left for path.
// The caller holds a lock that keeps other writers out.
func RemoveLeftovers(path string) {
	dir := filepath.Dir(path)
	left, _ := fs.Glob(os.DirFS(dir), "."+filepath.Base(path)+".*.tmp") // a leftover costs only space
	for _, name := range left {
		os.Remove(filepath.Join(dir, name))
	}
}

// Mode is the permissions of the file at path, or fresh when there is none.
func Mode(path string, fresh fs.FileMode) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return fresh
}

// SyncDir makes the names in a folder durable.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return SyncOpenDir(dir)
}

// SyncOpenDir is SyncDir of a folder that is open. File systems that cannot do so
// for a folder, as those of Windows, keep their names in order by themselves.
func SyncOpenDir(dir *os.File) error {
	err := dir.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) || os.PathSeparator == '\\' {
		return nil
	}
	return err
}
