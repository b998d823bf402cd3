package walk

import (
	"io/fs"
	"path"
	"strings"
)

// chosen are the places of one root that a walk is to look at.
type chosen struct {
	whole map[string]bool     // paths in the root; everything below them counts too
	names map[string][]string // by folder, "" or ending in "/": the names to look at therein
	seen  map[string]bool     // paths whose way up is in names
}

// everything chooses all of every root.
func everything(string) *chosen { return nil }

// choose sorts workspace paths by the root they lie in. The result gives nil,
// which is everything, for a root that is named as a whole, and an empty choice
// for one of which nothing is named.
func (t *Tree) choose(paths []string) (func(root string) *chosen, error) {
	choice := map[string]*chosen{}
	all := map[string]bool{}
	roots := t.opened()
	if len(roots) == 0 {
		return nil, fs.ErrClosed
	}
	for _, p := range paths {
		clean, err := Clean(strings.TrimSuffix(p, "/"))
		if err != nil {
			return nil, err
		}
		n, rel := split(roots, clean)
		root := roots[n].Name
		if rel == "" {
			all[root] = true
			continue
		}
		c := choice[root]
		if c == nil {
			c = &chosen{whole: map[string]bool{}, names: map[string][]string{}, seen: map[string]bool{}}
			choice[root] = c
		}
		c.whole[rel] = true
		for at := rel; at != "" && !c.seen[at]; {
			c.seen[at] = true
			dir, name := path.Split(at)
			c.names[dir] = append(c.names[dir], name)
			at = strings.TrimSuffix(dir, "/")
		}
	}
	return func(root string) *chosen {
		if all[root] {
			return nil
		}
		if c := choice[root]; c != nil {
			return c
		}
		return &chosen{}
	}, nil
}
