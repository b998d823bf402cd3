package walk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// maxLookup bounds the folders that a Lookup keeps open: each has a file descriptor.
const maxLookup = 64

// Lookup looks at the files of one answer. It opens each folder once, within its parent,
// after a check that the folder is no symbolic link. It does not see that a folder was
// replaced after that, so it lives no longer than the answer. A Lookup must be closed. It
// is not safe for concurrent use.
type Lookup struct {
	tree    *Tree
	folders map[lookupKey]*os.Root
}

// lookupKey is a folder: its path relative to its root.
type lookupKey struct {
	root *os.Root
	path string
}

// Lookup returns a Lookup of the workspace's files.
func (t *Tree) Lookup() *Lookup { return &Lookup{tree: t} }

// Stat returns the same as Tree.Stat.
func (l *Lookup) Stat(p string) (fs.FileInfo, error) {
	root, rel, err := l.tree.locate(p)
	if err != nil {
		return nil, err
	}
	_, _, info, err := l.find(root, rel)
	return info, err
}

// find returns the folder that holds the file at rel, the file's name, and what Lstat
// says of it. It refuses a path through a symbolic link.
func (l *Lookup) find(root *os.Root, rel string) (folder *os.Root, name string, info fs.FileInfo, err error) {
	folder, name = root, rel
	for i := range len(rel) {
		if rel[i] != '/' {
			continue
		}
		if folder, err = l.enter(root, folder, rel[:i]); err != nil {
			return nil, "", nil, err
		}
		name = rel[i+1:]
	}
	info, err = folder.Lstat(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, _ := folder.Readlink(name)
		err = fmt.Errorf("%w; this one points to %q", ErrSymlink, target)
	}
	if err != nil {
		return nil, "", nil, pathError(rel, err)
	}
	return folder, name, info, nil
}

// enter returns the folder at rel, which parent holds.
func (l *Lookup) enter(root, parent *os.Root, rel string) (*os.Root, error) {
	key := lookupKey{root, rel}
	if folder := l.folders[key]; folder != nil {
		return folder, nil
	}
	name := rel[strings.LastIndexByte(rel, '/')+1:]
	info, err := parent.Lstat(name)
	switch {
	case err != nil:
	case info.Mode()&fs.ModeSymlink != 0:
		err = ErrSymlink
	case !info.IsDir():
		err = fs.ErrNotExist // as for a path whose folder was removed: none exists below a file
	}
	if err != nil {
		return nil, pathError(rel, err)
	}
	folder, err := parent.OpenRoot(name)
	if err != nil {
		return nil, pathError(rel, err)
	}
	if len(l.folders) == maxLookup {
		l.Close()
	}
	if l.folders == nil {
		l.folders = map[lookupKey]*os.Root{}
	}
	l.folders[key] = folder
	return folder, nil
}

// Close closes the folders.
func (l *Lookup) Close() {
	for _, folder := range l.folders {
		folder.Close() // nothing was written
	}
	clear(l.folders)
}

// pathError returns err with the path rel in place of the name it has.
func pathError(rel string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: e.Op, Path: rel, Err: e.Err}
	}
	return &fs.PathError{Op: "open", Path: rel, Err: err}
}
