// Package git reads the history of a git repository: its commits and the files that they
// change. It never writes, and executes nothing: no git command, hook or filter. It reads
// no configuration, and no object store outside of the repository.
//
// A repository is untrusted. Every file is read within the repository's directory, every
// object, chain of deltas and comparison of trees has a limit, and so has the work of a
// Repository as a whole. The contents of files are read only by Blob.
//
// The formats are those of gitformat-pack(5), gitformat-index(5) and gitrepository-layout(5);
// objects are named by SHA-1.
package git

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNone reports that a folder is not the root of a git repository with a commit.
var ErrNone = errors.New("no git history")

// ErrLimit reports that a limit of the package ends the work.
var ErrLimit = errors.New("the repository exceeds a limit")

// Limits of what is read.
const (
	maxObject  = 16 << 20  // bytes of an inflated object or delta
	maxChain   = 256 << 20 // bytes of an object's deltas and their results
	maxDeltas  = 4096      // number of deltas of an object, git's own maximum is 4095
	maxWork    = 4 << 30   // bytes that a Repository makes
	maxChange  = 256 << 20 // of these, for one call of Changes
	maxPacks   = 128
	maxIndexes = 512 << 20 // bytes of all indexes of packs
	maxRefs    = 64 << 20  // bytes of packed-refs
)

// Hash is the name of an object.
type Hash [20]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash returns the hash with a hexadecimal name.
func ParseHash(s string) (h Hash, ok bool) {
	if len(s) != 2*len(h) {
		return h, false
	}
	_, err := hex.Decode(h[:], []byte(s))
	return h, err == nil
}

// Repository is an open repository. It is not safe for concurrent use.
type Repository struct {
	top   *os.Root // the files that worktrees share
	own   *os.Root // the files of this worktree, such as HEAD
	packs []*pack
	work  int64 // inflated bytes so far
	cache cache

	buffer bufio.Reader
	zlib   io.ReadCloser // reads buffer
}

// Open opens the repository whose worktree is folder. The error is ErrNone if folder has no
// .git, if .git is a symbolic link or leads to a directory that does not lead back, or if the
// repository borrows objects of another one.
func Open(folder string) (*Repository, error) {
	dir := filepath.Join(folder, ".git")
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return nil, ErrNone
	}
	if info.IsDir() {
		return openDirs(dir, dir)
	}
	own, err := worktreeDir(folder)
	if err != nil {
		return nil, ErrNone
	}
	return openDirs(filepath.Dir(filepath.Dir(own)), own)
}

// OpenDir opens a git directory, such as that of a bare repository.
func OpenDir(dir string) (*Repository, error) { return openDirs(dir, dir) }

func openDirs(top, own string) (_ *Repository, err error) {
	r := &Repository{}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	if r.top, err = os.OpenRoot(top); err != nil {
		return nil, err
	}
	if r.own, err = os.OpenRoot(own); err != nil {
		return nil, err
	}
	if _, err := r.top.Lstat("objects/info/alternates"); err == nil {
		return nil, ErrNone
	}
	return r, r.openPacks()
}

// worktreeDir returns the directory that the file .git of a linked worktree names, which is
// in a directory "worktrees" and whose file gitdir names that .git.
func worktreeDir(folder string) (string, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", err
	}
	defer root.Close()
	line, err := readFile(root, ".git", 4096)
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "gitdir: ")
	if err != nil || !ok {
		return "", ErrNone
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(folder, dir)
	}
	if filepath.Base(filepath.Dir(dir)) != "worktrees" {
		return "", ErrNone
	}
	own, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer own.Close()
	back, err := readFile(own, "gitdir", 4096)
	if err != nil {
		return "", err
	}
	named := strings.TrimSpace(string(back))
	if !filepath.IsAbs(named) {
		named = filepath.Join(dir, named)
	}
	there, err1 := os.Lstat(named)
	here, err2 := os.Lstat(filepath.Join(folder, ".git"))
	if err := errors.Join(err1, err2); err != nil || !os.SameFile(there, here) {
		return "", ErrNone
	}
	return dir, nil
}

// Close closes the files of r.
func (r *Repository) Close() {
	for _, p := range r.packs {
		p.data.Close()
	}
	for _, root := range []*os.Root{r.top, r.own} {
		if root != nil {
			root.Close()
		}
	}
}

// Head returns the commit that is checked out, or ErrNone.
func (r *Repository) Head() (Hash, error) {
	root, name := r.own, "HEAD"
	for range 5 {
		text, err := readFile(root, name, 4096)
		if errors.Is(err, fs.ErrNotExist) {
			return r.packedRef(name)
		}
		if err != nil {
			return Hash{}, fmt.Errorf("reading %s: %w", name, err)
		}
		line := strings.TrimSpace(string(text))
		if h, ok := ParseHash(line); ok {
			return h, nil
		}
		target, ok := strings.CutPrefix(line, "ref: ")
		if !ok || !strings.HasPrefix(target, "refs/") || !fs.ValidPath(target) {
			return Hash{}, fmt.Errorf("%s names no commit: %.60q", name, line)
		}
		root, name = r.top, target
	}
	return Hash{}, ErrLimit
}

// packedRef looks a reference up in the file packed-refs.
func (r *Repository) packedRef(name string) (Hash, error) {
	text, err := readFile(r.top, "packed-refs", maxRefs)
	if errors.Is(err, fs.ErrNotExist) {
		return Hash{}, ErrNone
	}
	if err != nil {
		return Hash{}, err
	}
	for line := range strings.Lines(string(text)) {
		hash, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		if h, ok := ParseHash(hash); ok && ref == name {
			return h, nil
		}
	}
	return Hash{}, ErrNone
}

// openFile opens a regular file, without waiting if it is a pipe.
func openFile(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// readFile reads a regular file of at most limit bytes.
func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	f, _, err := openFile(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = ErrLimit
	}
	return text, err
}
