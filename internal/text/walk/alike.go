package walk

import "strings"

// cardFolders are the folders of cards. "cards/" is an abbreviation of both.
var cardFolders = []string{".cairn/cards/", ".cuedeck/cards/"}

// Cards returns the paths that a name such as "cards/abc123.md" abbreviates, none for other
// names.
func Cards(name string) []string {
	id, ok := strings.CutPrefix(name, "cards/")
	if !ok {
		return nil
	}
	var paths []string
	for _, folder := range cardFolders {
		paths = append(paths, folder+id)
	}
	return paths
}

// Alike returns the path that equals name if case is ignored and "cards/" can abbreviate a
// folder of cards. ok is false if there is none, or more than one.
func Alike(paths []string, name string) (path string, ok bool) {
	for _, p := range paths {
		if !strings.EqualFold(p, name) && !strings.EqualFold(short(p), name) {
			continue
		}
		if ok && p != path {
			return "", false
		}
		path, ok = p, true
	}
	return path, ok
}

func short(p string) string {
	for _, folder := range cardFolders {
		if id, ok := strings.CutPrefix(p, folder); ok {
			return "cards/" + id
		}
	}
	return p
}
