package git

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Change is a file that differs between two trees: it was added if Old is "", removed if
// New is "", moved if they differ, and otherwise modified.
type Change struct{ Old, New string }

// Limits of a comparison.
const (
	maxDepth   = 64
	maxPath    = 1024
	maxTrees   = 20_000 // trees that are read
	maxChanges = 5_000
)

// Changes returns the files in which a commit differs from its first parent, in the order
// of the trees. A file whose content is that of a removed file was moved; so was one with
// the name of the only removed file of that name. The result has at most maxChanges
// entries; complete reports that these are all.
func (r *Repository) Changes(c *Commit) (changes []Change, complete bool, err error) {
	var before *Hash
	if len(c.Parents) > 0 {
		p, err := r.Commit(c.Parents[0])
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, nil // the end of a shallow clone
		}
		if err != nil {
			return nil, false, err
		}
		before = &p.Tree
	}
	d, complete, err := r.compare(before, &c.Tree)
	return d.changes(), complete, err
}

// item is an entry of a tree.
type item struct {
	name string
	mode string
	hash Hash
}

func (i item) isFile() bool { return strings.HasPrefix(i.mode, "100") }

// tree returns the hash of a tree, nil for anything else.
func (i item) tree() *Hash {
	if i.mode == "40000" {
		return &i.hash
	}
	return nil
}

// tree reads a tree. It leaves out what is neither a file nor a tree, and names that no
// document can have.
func (r *Repository) tree(h *Hash) (items []item, err error) {
	if h == nil {
		return nil, nil
	}
	text, err := r.object(*h, treeObject)
	for len(text) > 0 && err == nil {
		mode, rest, ok1 := bytes.Cut(text, []byte{' '})
		name, rest, ok2 := bytes.Cut(rest, []byte{0})
		if !ok1 || !ok2 || len(rest) < len(Hash{}) {
			return nil, errors.New("damaged tree " + h.String())
		}
		i := item{string(name), string(mode), Hash(rest[:len(Hash{})])}
		if text = rest[len(Hash{}):]; (i.tree() != nil || i.isFile()) && isName(i.name) {
			items = append(items, i)
		}
	}
	return items, err
}

func isName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.EqualFold(name, ".git") && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == '/' || r == '\\' || unicode.IsControl(r) })
}

// differ collects the differences of two trees.
type differ struct {
	*Repository
	end   int64 // of the work
	trees int
	// The files of modified and removed have the content before.
	modified, added, removed []File
}

// compare compares two trees. complete reports that no limit ended it.
func (r *Repository) compare(before, after *Hash) (d *differ, complete bool, err error) {
	d = &differ{Repository: r, end: r.work + maxChange}
	err = d.compare("", before, after, 0)
	if errors.Is(err, ErrLimit) && r.work < maxWork {
		return d, false, nil
	}
	return d, err == nil, err
}

func (d *differ) compare(dir string, before, after *Hash, depth int) error {
	if depth > maxDepth || len(dir) > maxPath || d.trees > maxTrees || d.work > d.end || len(d.modified)+len(d.added)+len(d.removed) > maxChanges {
		return ErrLimit
	}
	d.trees++
	old, err := d.tree(before)
	if err != nil {
		return err
	}
	now, err := d.tree(after)
	if err != nil {
		return err
	}
	// An entry of a damaged tree can be in any place, so names are looked up.
	was := make(map[string]item, len(old))
	for _, i := range old {
		was[i.name] = i
	}
	for _, i := range now {
		w := was[i.name]
		delete(was, i.name)
		if err := d.entry(dir+i.name, w, i, depth); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if err := d.entry(dir+name, was[name], item{}, depth); err != nil {
			return err
		}
	}
	return nil
}

// entry compares the entries of a path; a missing one has no mode.
func (d *differ) entry(path string, old, now item, depth int) error {
	if old.hash == now.hash && old.isFile() == now.isFile() {
		return nil
	}
	switch {
	case old.isFile() && now.isFile():
		d.modified = append(d.modified, File{path, old.hash})
	case old.isFile():
		d.removed = append(d.removed, File{path, old.hash})
	case now.isFile():
		d.added = append(d.added, File{path, now.hash})
	}
	before, after := old.tree(), now.tree()
	if before == nil && after == nil {
		return nil
	}
	return d.compare(path+"/", before, after, depth+1)
}

// changes joins a removed and an added file to a moved one.
func (d *differ) changes() []Change {
	byBlob, byName := map[Hash]int{}, map[string]int{}
	base := func(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
	for i, f := range d.removed {
		byBlob[f.Hash] = i
		if _, twice := byName[base(f.Path)]; twice {
			i = -1
		}
		byName[base(f.Path)] = i
	}
	out := make([]Change, 0, len(d.modified)+len(d.added)+len(d.removed))
	for _, f := range d.modified {
		out = append(out, Change{f.Path, f.Path})
	}
	moved := make([]bool, len(d.removed))
	for _, f := range d.added {
		from, ok := byBlob[f.Hash]
		if !ok || moved[from] {
			from, ok = byName[base(f.Path)]
		}
		c := Change{New: f.Path}
		if ok && from >= 0 && !moved[from] {
			moved[from], c.Old = true, d.removed[from].Path
		}
		out = append(out, c)
	}
	for i, f := range d.removed {
		if !moved[i] {
			out = append(out, Change{Old: f.Path})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Old+"\x00"+a.New, b.Old+"\x00"+b.New) })
	return out
}
