// Package atomicfile replaces a file in one step: readers, also after a crash, see either
// the old or the new content, complete.
//
// Unlike libraries for this purpose, it also makes the folder durable. Without that step the
// old file can reappear after a power failure.
package atomicfile

import (
	"bytes"
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

// File is a temporary file in the folder of the file that it will replace.
type File struct {
	*os.File
	root       *os.Root
	owned      bool   // close root with the file
	temp, name string // below root
	over       bool   // committed or discarded
}

// Create creates a temporary file with the permissions mode. Commit gives it the name path;
// if path is a symbolic link, Commit replaces the link. The caller must call Discard, also
// after Commit. Create removes the old temporary files of killed processes in the folder.
func Create(path string, mode fs.FileMode) (*File, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	RemoveOldLeftovers(root, ".")
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

// CreateIn is Create for the file name in root, which the caller closes. It follows no link
// out of root. The permissions are 0600; the caller can change them.
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

// The names of temporary files have at most maxBase bytes of the file's own name, because a
// name has at most 255 bytes.
const (
	tempPrefix = ".cairn-"
	tempSuffix = ".tmp"
	maxBase    = 200
)

// Commit makes the content durable, renames the file, and makes the name durable. After an
// error before the last step, the old file is unchanged.
func (f *File) Commit() error { return f.CommitBy(f.root.Rename) }

// CommitBy is Commit with the function place in place of a rename. Both names are relative
// to the root.
func (f *File) CommitBy(place func(temp, name string) error) error {
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := place(f.temp, f.name); err != nil {
		return err
	}
	f.over = true
	return errors.Join(syncOpened(f.root.Open(filepath.Dir(f.name))), f.closeRoot())
}

// Discard removes the temporary file, unless it was committed.
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
	return WriteBy(path, mode, func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
}

// WriteBy replaces the file at path by what write writes.
func WriteBy(path string, mode fs.FileMode, write func(*os.File) error) error {
	f, err := Create(path, mode)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := write(f.File); err != nil {
		return err
	}
	return f.Commit()
}

// WriteIn replaces the file name in root by content, and creates its folders. It follows no
// link out of root. It keeps the permissions of the old file; those of a new file are mode.
func WriteIn(root *os.Root, name string, content []byte, mode fs.FileMode) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
	}
	f, err := CreateIn(root, name)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		return err
	}
	return f.Commit()
}

// Temporary reports whether name is that of a temporary file, which a killed process leaves.
func Temporary(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// RemoveLeftovers removes the temporary files of killed processes for path. The caller must
// hold a lock that excludes other writers.
func RemoveLeftovers(path string) {
	dir := filepath.Dir(path)
	left, _ := fs.Glob(os.DirFS(dir), tempPrefix+filepath.Base(path)+".*"+tempSuffix) // after an error they only take space
	for _, name := range left {
		os.Remove(filepath.Join(dir, name))
	}
}

// oldLeftover is the age at which a temporary file no longer has a writer.
const oldLeftover = time.Hour

// RemoveOldLeftovers removes the old temporary files of killed processes in a folder below
// root.
func RemoveOldLeftovers(root *os.Root, folder string) {
	entries, _ := fs.ReadDir(root.FS(), filepath.ToSlash(folder))
	for _, e := range entries {
		if !Temporary(e.Name()) {
			continue
		}
		name := filepath.Join(folder, e.Name())
		if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > oldLeftover {
			root.Remove(name)
		}
	}
}

// LineEnds returns text with the line ends of old: CRLF if every line of old ends with it.
func LineEnds(old, text []byte) []byte {
	if n := bytes.Count(old, []byte("\r\n")); n == 0 || n != bytes.Count(old, []byte("\n")) {
		return text
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
}

// SyncDir makes the names in a folder durable. It does nothing on file systems without this
// operation, such as those of Windows, which need none.
func SyncDir(path string) error { return syncOpened(os.Open(path)) }

// syncOpened is SyncDir for the results of opening a folder, which it closes.
func syncOpened(dir *os.File, err error) error {
	if err != nil {
		return err
	}
	defer dir.Close()
	err = dir.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) || os.PathSeparator == '\\' {
		return nil
	}
	return err
}
