// Package atomicfile replaces a file in one step: a reader, and a process that finds it
// after a crash, sees the old content or the new, whole.
//
// Libraries for this leave out the last step, to make the folder durable, without
// which the old file can be back after a power failure.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// File is a file that is being written in the folder of the file it is to replace.
type File struct {
	*os.File
	root       *os.Root
	owned      bool   // root is closed with the file
	temp, name string // below root
	over       bool   // committed or discarded
}

// Create begins a file that Commit gives the name path and the permissions mode.
// Discard must follow in any case. Where path is a link, the link is replaced.
func Create(path string, mode fs.FileMode) (*File, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	f, err := CreateIn(root, filepath.Base(path))
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	f.owned = true
	if err := f.Chmod(mode); err != nil {
		f.Discard()
		return nil, err
	}
	return f, nil
}

// CreateIn is Create of the file name in root, which the caller closes. It does not leave
// root by a link, and leaves the permissions, 0600, to the caller.
func CreateIn(root *os.Root, name string) (*File, error) {
	dir, base := filepath.Split(name)
	base = strings.ToValidUTF8(base[:min(len(base), maxBase)], "")
	temp := filepath.Join(dir, fmt.Sprintf("%s%s.%d%s", tempPrefix, base, rand.Uint64(), tempSuffix))
	f, err := root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &File{File: f, root: root, temp: temp, name: name}, nil
}

// The names of temporary files. They hold maxBase bytes of the file's own name at most:
// names have at most 255.
const (
	tempPrefix = ".cairn-"
	tempSuffix = ".tmp"
	maxBase    = 200
)

// Commit makes the content durable and puts it in place. On an error before the
// last step, which makes the name durable, the old file is as it was.
func (f *File) Commit() error { return f.CommitBy(f.root.Rename) }

// CommitBy is Commit where place gives the file its name. Both names are below the root.
func (f *File) CommitBy(place func(temp, name string) error) error {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := place(f.temp, f.name); err != nil {
		return err
	}
	f.over = true
	dir, err := f.root.Open(filepath.Dir(f.name))
	if err == nil {
		err = errors.Join(SyncOpenDir(dir), dir.Close())
	}
	return errors.Join(err, f.closeRoot())
}

// Discard removes what was written, unless it is in place.
func (f *File) Discard() {
	if !f.over {
		f.over = true
		f.Close()
		_ = f.root.Remove(f.temp)
		_ = f.closeRoot()
	}
}

func (f *File) closeRoot() error {
	if !f.owned {
		return nil
	}
	return f.root.Close()
}

// Write replaces the file at path by content.
func Write(path string, content []byte, mode fs.FileMode) error {
	f, err := Create(path, mode)
	return write(f, err, content)
}

// WriteIn replaces the file name in root by content, and makes its folders. It does not
// leave root by a link. The permissions of the old file stay; those of a new one are mode.
func WriteIn(root *os.Root, name string, content []byte, mode fs.FileMode) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
	}
	f, err := CreateIn(root, name)
	if err == nil {
		err = f.Chmod(mode)
	}
	return write(f, err, content)
}

func write(f *File, err error, content []byte) error {
	if f == nil {
		return err
	}
	defer f.Discard()
	if err == nil {
		_, err = f.Write(content)
	}
	if err != nil {
		return err
	}
	return f.Commit()
}

// RemoveLeftovers removes the temporary files that killed processes left for path.
// The caller holds a lock that keeps other writers out.
func RemoveLeftovers(path string) {
	dir := filepath.Dir(path)
	left, _ := fs.Glob(os.DirFS(dir), tempPrefix+filepath.Base(path)+".*"+tempSuffix) // a leftover costs only space
	for _, name := range left {
		os.Remove(filepath.Join(dir, name))
	}
}

// oldLeftover is the age from which the writer of a temporary file has crashed.
const oldLeftover = time.Hour

// RemoveOldLeftovers removes what killed processes left long ago for any file of a folder
// below root.
func RemoveOldLeftovers(root *os.Root, folder string) {
	entries, _ := fs.ReadDir(root.FS(), filepath.ToSlash(folder))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempPrefix) || !strings.HasSuffix(e.Name(), tempSuffix) {
			continue
		}
		name := filepath.Join(folder, e.Name())
		if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > oldLeftover {
			root.Remove(name)
		}
	}
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
