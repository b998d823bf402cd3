package walk

import "strings"

// cardFolders are the folders that hold cards; "cards/" is short for either.
var cardFolders = []string{".cairn/cards/", ".cuedeck/cards/"}

// Cards returns the paths that "cards/abc123.md" is short for; none for another name.
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

// Alike returns the only one of paths that a name means: the one that is equal in
// any case, where "cards/abc123.md" is short for a card. ok is false if there is
// none, or several.
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
