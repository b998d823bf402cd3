package walk

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPath is the longest workspace path in bytes, Linux's PATH_MAX.
const maxPath = 4096

// ErrPath is wrapped by every error of Clean.
var ErrPath = errors.New("unusable path")

// Clean converts an untrusted path to a workspace path: relative, slash-separated, without
// ".", ".." and empty elements. It looks at the text only; Tree.ReadFile checks that the
// file exists inside the root. Clean returns workspace paths, such as every path of a walk,
// unchanged.
//
// Clean refuses paths that are empty, absolute, or longer than 4096 bytes; that leave the
// workspace, even in the middle; that end in a slash; that begin or end with a blank. It
// refuses paths that contain a backslash, a control character, invalid UTF-8, a drive
// letter or an NTFS stream ("a.md:stream"). It decodes nothing: "%2e" is a name.
func Clean(p string) (string, error) {
	refuse := func(why string) (string, error) {
		shown := p
		if len(shown) > 80 {
			shown = shown[:80] + "..."
		}
		return "", fmt.Errorf("%w: %q %s", ErrPath, shown, why)
	}
	switch {
	case p == "":
		return refuse("is empty")
	case len(p) > maxPath:
		return refuse(fmt.Sprintf("has %d bytes, want at most %d", len(p), maxPath))
	case !utf8.ValidString(p):
		return refuse("is not valid UTF-8")
	case strings.IndexFunc(p, unicode.IsControl) >= 0:
		return refuse("holds a control character")
	case strings.ContainsRune(p, '\\'):
		return refuse("holds a backslash, want slashes")
	case p[0] == '/':
		return refuse("is absolute, want a path relative to the workspace")
	case strings.TrimSpace(p) != p:
		return refuse("begins or ends with a blank")
	case p[len(p)-1] == '/':
		return refuse("ends in a slash, want a file")
	case hasDrive(p):
		return refuse("begins with a drive letter")
	case hasStream(p):
		return refuse("names a stream of a file")
	}
	depth := 0
	for e := range strings.SplitSeq(p, "/") {
		switch e {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return refuse("leaves the workspace")
			}
		default:
			depth++
		}
	}
	p = path.Clean(p)
	if p == "." {
		return refuse("is the workspace itself, want a file")
	}
	// Cleaning can move a later element to the front: "./C:/x", "a/../ b".
	if p[0] == '/' || strings.TrimSpace(p) != p || hasDrive(p) {
		return refuse("begins with a blank or a drive letter")
	}
	return p, nil
}

func hasDrive(p string) bool {
	return len(p) > 1 && p[1] == ':' && 'a' <= p[0]|0x20 && p[0]|0x20 <= 'z'
}

// hasStream reports whether a colon follows a file extension, as in "a.md:stream" and
// "a.md::$DATA". Other colons are part of a name ("FAQ:-Install.md"), except on Windows,
// where every colon begins a stream.
func hasStream(p string) bool {
	for i := range len(p) {
		if p[i] != ':' {
			continue
		}
		if runtime.GOOS == "windows" {
			return true
		}
		name := p[strings.LastIndexByte(p[:i], '/')+1 : i]
		dot := strings.LastIndexByte(name, '.')
		if dot >= 0 && dot < len(name)-1 && !strings.ContainsFunc(name[dot+1:], func(r rune) bool {
			return r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}) {
			return true
		}
	}
	return false
}

// PathIn returns the workspace path of an absolute name in one of the roots, "." for the main
// root itself. ok is false for a name outside of them.
func PathIn(roots []Root, name string) (p string, ok bool) {
	for _, r := range roots {
		if rel, err := filepath.Rel(r.Dir, name); err == nil && filepath.IsLocal(rel) {
			return path.Join(r.Name, filepath.ToSlash(rel)), true
		}
	}
	return "", false
}

// Under reports whether a clean workspace path is dir or below it.
func Under(path, dir string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/')
}

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
