package walk

import (
	"io/fs"
	"path"
	"strings"
)

// chosen selects the files and folders of one root that a walk visits.
type chosen struct {
	whole map[string]bool     // selected paths in the root, with everything below them
	names map[string][]string // names to visit, by folder: "" or a path that ends in "/"
	seen  map[string]bool     // paths that are in names with all their parents
}

// everything selects all of every root.
func everything(string) *chosen { return nil }

// choose groups workspace paths by root. The function that it returns gives the selection
// of a root: nil, which means everything, if the root itself is among the paths, and an
// empty one if no path is in the root.
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
