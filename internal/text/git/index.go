package git

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

const (
	maxIndex   = 64 << 20 // bytes of the file index
	maxEntries = 50_000   // files of the index that are compared
)

var errIndex = errors.New("damaged git index")

// Differing returns the tracked files of the worktree in folder that may differ from the
// commit that is checked out, at most limit, the last changed first. These are the files
// whose size or time is not that of the index, and those that were staged. It reads no
// file's content.
func (r *Repository) Differing(folder *os.Root, limit int) ([]string, error) {
	text, err := readFile(r.own, "index", maxIndex)
	if err != nil {
		return nil, err
	}
	head, err := r.Head()
	if err != nil {
		return nil, err
	}
	c, err := r.Commit(head)
	if err != nil {
		return nil, err
	}
	committed, err := r.Files(c)
	if err != nil {
		return nil, err
	}
	type differing struct {
		path string
		time time.Time
	}
	var all []differing
	err = eachEntry(text, func(path string, mtime time.Time, size uint32, hash Hash) {
		info, err := folder.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || !fs.ValidPath(path) {
			return
		}
		if staged := committed[path] != hash; staged || !info.ModTime().Equal(mtime) || uint32(info.Size()) != size {
			all = append(all, differing{path, info.ModTime()})
		}
	})
	slices.SortStableFunc(all, func(a, b differing) int { return b.time.Compare(a.time) })
	var paths []string
	for _, d := range all[:min(limit, len(all))] {
		paths = append(paths, d.path)
	}
	return paths, err
}

// files adds the files below a tree to into.
func (r *Repository) files(dir string, tree *Hash, depth int, into map[string]Hash) error {
	items, err := r.tree(tree)
	if err != nil {
		return err
	}
	if depth > maxDepth || len(into) > 2*maxEntries || r.work > maxChange {
		return ErrLimit
	}
	for _, i := range items {
		if sub := i.tree(); sub != nil {
			if err := r.files(dir+i.name+"/", sub, depth+1, into); err != nil {
				return err
			}
			continue
		}
		into[dir+i.name] = i.hash
	}
	return nil
}

// eachEntry calls fn with the entries of an index of version 2 to 4.
func eachEntry(text []byte, fn func(path string, mtime time.Time, size uint32, hash Hash)) error {
	const fixed = 62 // bytes of an entry before its name
	if len(text) < 12 || !bytes.HasPrefix(text, []byte("DIRC")) {
		return errIndex
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if version < 2 || version > 4 || count > maxEntries {
		return errIndex
	}
	var name []byte
	for text = text[12:]; count > 0; count-- {
		start := fixed
		if len(text) > fixed && text[60]&0x40 != 0 { // two further bytes of flags
			start += 2
		}
		if len(text) <= start {
			return errIndex
		}
		rest := text[start:]
		if version == 4 { // the name shares its first bytes with the previous one
			drop, used := offsetOf(rest)
			if used == 0 || drop > int64(len(name)) {
				return errIndex
			}
			start, rest, name = start+used, rest[used:], name[:len(name)-int(drop)]
		} else {
			name = name[:0]
		}
		end := bytes.IndexByte(rest, 0)
		if end < 0 || len(name)+end > 4*maxPath {
			return errIndex
		}
		name = append(name, rest[:end]...)
		seconds, nanos := binary.BigEndian.Uint32(text[8:]), binary.BigEndian.Uint32(text[12:])
		fn(string(name), time.Unix(int64(seconds), int64(nanos)), binary.BigEndian.Uint32(text[36:]), Hash(text[40:60]))
		size := start + end + 1
		if version < 4 {
			size = (size + 7) &^ 7
		}
		text = text[min(size, len(text)):]
	}
	return nil
}
