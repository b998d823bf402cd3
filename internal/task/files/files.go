// Package files writes the documents of a workspace safely. It holds a lock that excludes
// other processes, and writes only if the file is unchanged since it was read, and
// atomically, so that a reader sees either the old file or the new one. It does not
// interpret the files.
package files

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"cairn/internal/base/atomicfile"
	"cairn/internal/text/walk"
)

// ErrChanged reports that a file changed since it was read.
var ErrChanged = errors.New("file changed since it was read")

// LockError reports that another process did not release the lock in time.
type LockError struct {
	Path   string // the locked folder of the workspace
	PID    int    // of the process that holds the lock, 0 if unknown
	Waited time.Duration
}

func (e *LockError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s has been writing in %s for %s; try again", who, e.Path, e.Waited.Round(time.Millisecond))
}

// Options configures New. Nil and the zero value mean the defaults.
type Options struct {
	// LockWait is the maximum time that a writer waits for another process; 0 means 5 s.
	LockWait time.Duration
	// Fault is for tests. If set, it is called between writing a new file and renaming it
	// into place. If it returns an error, the write stops without cleanup, like a crash.
	Fault func(path string) error
}

// Tree reads and writes the files of a workspace. It is safe for concurrent use.
type Tree struct {
	*walk.Tree
	o       Options
	writing *semaphore.Weighted // of size 1, held while this process writes
	swept   sync.Map            // folders searched for temporary files of crashed writers
}

// New returns a Tree for the open roots of a workspace. The caller closes tree.
func New(tree *walk.Tree, o *Options) *Tree {
	t := &Tree{Tree: tree, writing: semaphore.NewWeighted(1), o: *cmp.Or(o, &Options{})}
	t.o.LockWait = cmp.Or(t.o.LockWait, 5*time.Second)
	return t
}

// Stat describes a file or folder without following links. It first reopens the workspace,
// in case its folder was replaced. Every task tool calls Stat first.
func (t *Tree) Stat(p string) (fs.FileInfo, error) {
	t.Reopen()
	return t.Tree.Stat(p)
}

// Stamp identifies the state of a file when it was read.
type Stamp struct {
	Size, ModTime int64 // bytes; Unix nanoseconds
	Hash          [sha256.Size]byte
}

// racyWindow exceeds the resolution of time stamps on all common file systems except FAT.
const racyWindow = 50 * time.Millisecond

// Racy reports whether a file that changed at the given time, in Unix nanoseconds, may
// change again without a new time stamp.
func Racy(changed int64) bool {
	age := time.Since(time.Unix(0, changed))
	return age < racyWindow && age > -time.Hour
}

// Read reads a file and returns its Stamp. The errors are those of walk.Tree.ReadFile.
func (t *Tree) Read(p string) ([]byte, Stamp, error) {
	t.Reopen()
	content, info, err := t.ReadFile(p, 0)
	if err != nil {
		return nil, Stamp{}, err
	}
	return content, Stamp{info.Size(), info.ModTime().UnixNano(), sha256.Sum256(content)}, nil
}

// Lock waits until no other process writes in the workspace. The caller must call unlock
// once. The error is a *LockError, an error of ctx or one of the file system.
func (t *Tree) Lock(ctx context.Context) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.Reopen()
	dir := t.Roots()[0].Dir
	start := time.Now()
	wait, cancel := context.WithTimeout(ctx, t.o.LockWait)
	defer cancel()
	late := func() error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &LockError{Path: dir, PID: holder(dir), Waited: time.Since(start)}
	}
	// TryAcquire takes a free lock even if wait has ended.
	if !t.writing.TryAcquire(1) && t.writing.Acquire(wait, 1) != nil {
		return nil, late()
	}
	lock := newLock(dir)
	locked, err := lock.TryLock()
	if err == nil && !locked {
		_, err = lock.TryLockContext(wait, lockRetry)
	}
	if err != nil {
		t.writing.Release(1)
		if wait.Err() != nil {
			return nil, late()
		}
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return func() { lock.Unlock(); t.writing.Release(1) }, nil
}

// replace replaces the content of a file and keeps its permissions. If the file does not
// match was, the error wraps ErrChanged. On any error the file is unchanged. The caller holds
// the lock.
func (t *Tree) replace(p string, content []byte, was Stamp) error {
	info, err := t.Stat(p)
	if err == nil {
		err = t.write(p, content, info.Mode().Perm(), func(root *os.Root, temp, name string) error {
			_, now, err := t.Read(p)
			if err == nil && now != was {
				err = ErrChanged
			}
			if err != nil {
				return err
			}
			return root.Rename(temp, name)
		})
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", p, err)
	}
	return nil
}

// Create creates a file and its folders. If the file exists, the error wraps fs.ErrExist and
// the file is unchanged. The caller holds the lock.
func (t *Tree) Create(p string, content []byte) error {
	err := t.write(p, content, 0o644, func(root *os.Root, temp, name string) error {
		// A hard link does not replace a file that another program creates in the
		// meantime. Without hard links only the lock protects against that.
		err := root.Link(temp, name)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return errors.Join(err, root.Remove(temp))
		}
		if _, err := root.Lstat(name); err == nil {
			return fs.ErrExist
		}
		return root.Rename(temp, name)
	})
	if err != nil {
		return fmt.Errorf("creating %s: %w", p, err)
	}
	return nil
}

// Remove removes a file. The caller holds the lock.
func (t *Tree) Remove(p string) error {
	info, err := t.Stat(p)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", p)
	}
	if err != nil {
		return err
	}
	root, rel, err := t.open(p)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.Remove(rel)
}

// open opens the root of a file, whose folder it makes, and returns the file's path there. It
// fails if the folder is reached through a symbolic link. Reads fail in the same way.
func (t *Tree) open(p string) (root *os.Root, rel string, err error) {
	dir, rel, err := t.Dir(p)
	if err != nil {
		return nil, "", err
	}
	if root, err = os.OpenRoot(dir); err != nil {
		return nil, "", err
	}
	rel = filepath.FromSlash(rel)
	err = root.MkdirAll(filepath.Dir(rel), 0o755)
	if parent := path.Dir(p); err == nil && parent != "." {
		var info fs.FileInfo
		if info, err = t.Stat(parent); err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a folder", parent)
		}
	}
	if err != nil {
		root.Close()
		return nil, "", err
	}
	return root, rel, nil
}

// write writes a temporary file in the folder of p, syncs it and calls place to rename it.
func (t *Tree) write(p string, content []byte, mode fs.FileMode, place func(root *os.Root, temp, name string) error) error {
	if len(content) > walk.DefaultMaxSize {
		return walk.ErrSize
	}
	root, rel, err := t.open(p)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, done := t.swept.LoadOrStore(root.Name()+"\x00"+filepath.Dir(rel), true); !done {
		atomicfile.RemoveOldLeftovers(root, filepath.Dir(rel))
	}
	f, err := atomicfile.CreateIn(root, rel)
	if err != nil {
		return err
	}
	crashed := false // by Fault
	defer func() {
		if !crashed {
			f.Discard()
		}
	}()
	_ = f.Chmod(mode) // some file systems have no modes
	if _, err := f.Write(content); err != nil {
		return err
	}
	return f.CommitBy(func(temp, name string) error {
		if t.o.Fault != nil {
			if err := t.o.Fault(p); err != nil {
				crashed = true
				return err
			}
		}
		return place(root, temp, name)
	})
}

// Edit reads a file, calls change for its new content and replaces the file, all under the
// lock. It does not write unchanged content. A file that is not UTF-8 is an error, since change
// would mix encodings.
func (t *Tree) Edit(ctx context.Context, p string, change func(old []byte, was Stamp) ([]byte, error)) (written bool, err error) {
	unlock, err := t.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	old, was, err := t.Read(p)
	if err != nil {
		return false, err
	}
	if !utf8.Valid(old) {
		return false, fmt.Errorf("%s is not UTF-8: convert it to UTF-8 to change it", p)
	}
	content, err := change(old, was)
	if err != nil || bytes.Equal(content, old) {
		return false, err
	}
	return true, t.replace(p, content, was)
}
