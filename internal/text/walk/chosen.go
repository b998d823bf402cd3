package walk

import (
	"path"
	"strings"
)

// chosen selects the files and folders of one root that a walk visits.
type chosen struct {
	whole map[string]bool     // selected paths in the root, with everything below them
	names map[string][]string // names to visit, by folder: "" or a path that ends in "/"
	seen  map[string]bool     // paths that are in names with all their parents
}

// choose returns what paths select in each of the roots: nil, which means everything, if
// paths is nil or has the root itself.
func choose(roots []opened, paths []string) ([]*chosen, error) {
	only := make([]*chosen, len(roots))
	if paths == nil {
		return only, nil
	}
	for i := range only {
		only[i] = &chosen{whole: map[string]bool{}, names: map[string][]string{}, seen: map[string]bool{}}
	}
	for _, p := range paths {
		clean, err := Clean(strings.TrimSuffix(p, "/"))
		if err != nil {
			return nil, err
		}
		n, rel := split(roots, clean)
		if rel == "" {
			only[n] = nil
		}
		c := only[n]
		if c == nil {
			continue
		}
		c.whole[rel] = true
		for at := rel; at != "" && !c.seen[at]; {
			c.seen[at] = true
			dir, name := path.Split(at)
			c.names[dir] = append(c.names[dir], name)
			at = strings.TrimSuffix(dir, "/")
		}
	}
	return only, nil
}
