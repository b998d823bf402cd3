package git

import (
	"bytes"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// File is a file of a commit.
type File struct {
	Path string
	Hash Hash // of its content
}

// Replaced returns the files of a commit that a later one does not have, or has with other
// content. complete reports that these are all, as for Changes.
func (r *Repository) Replaced(before, after *Commit) (files []File, complete bool, err error) {
	d, complete, err := r.compare(&before.Tree, &after.Tree)
	return append(d.modified, d.removed...), complete, err
}

// Files returns the content hashes of a commit's files by path.
func (r *Repository) Files(c *Commit) (map[string]Hash, error) {
	files := map[string]Hash{}
	return files, r.files("", &c.Tree, 0, files)
}

// Find returns the hash of a file of a commit; ok is false if the commit has no such file.
func (r *Repository) Find(c *Commit, path string) (h Hash, ok bool, err error) {
	tree := &c.Tree
	for name := range strings.SplitSeq(path, "/") {
		items, err := r.tree(tree)
		if err != nil || tree == nil {
			return h, false, err
		}
		tree, ok = nil, false
		for _, i := range items {
			if i.name == name {
				h, tree, ok = i.hash, i.tree(), i.isFile()
			}
		}
	}
	return h, ok, nil
}

// Blob returns the content of a file, of at most 16 MiB.
func (r *Repository) Blob(h Hash) ([]byte, error) { return r.object(h, blobObject) }

// Named returns the commit that a branch, a tag, a hash or HEAD names, or its nth ancestor
// along the first parents for NAME~n.
func (r *Repository) Named(name string) (*Commit, error) {
	name, back, _ := strings.Cut(name, "~")
	steps, err := strconv.Atoi("0" + back)
	if err != nil {
		return nil, fmt.Errorf("%q names no commit", name+"~"+back)
	}
	h, ok := ParseHash(name)
	if name == "HEAD" {
		if h, err = r.Head(); err != nil {
			return nil, err
		}
		ok = true
	}
	for _, in := range []string{"refs/tags/", "refs/heads/", "refs/remotes/", "refs/"} {
		if ok || !fs.ValidPath(name) {
			break
		}
		text, err := readFile(r.top, in+name, 4096)
		if err == nil {
			h, ok = ParseHash(string(bytes.TrimSpace(text)))
		} else if h, err = r.packedRef(in + name); err == nil {
			ok = true
		}
	}
	if !ok {
		return nil, fmt.Errorf("%q names no branch, tag or full hash of a commit", name)
	}
	// A tag of a tag is rare, and a longer chain is none.
	for range 3 {
		text, err := r.object(h, tagObject)
		if err != nil {
			break
		}
		line, _, _ := bytes.Cut(text, []byte("\n"))
		h, _ = ParseHash(strings.TrimPrefix(string(line), "object "))
	}
	c, err := r.Commit(h)
	for ; err == nil && steps > 0 && len(c.Parents) > 0; steps-- {
		c, err = r.Commit(c.Parents[0])
	}
	return c, err
}
