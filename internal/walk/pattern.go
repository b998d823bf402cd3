package walk

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of a glob: matching takes time that grows with each "**".
const (
	maxGlob  = 500
	maxStars = 4
)

// Glob returns the function that reports whether a path matches the pattern: "*" stands
// for any characters but "/", "**" for any folders, "?" for one character, and [a-z] and
// {a,b} for one of several.
func Glob(pattern string) (func(path string) bool, error) {
	if len(pattern) > maxGlob || strings.Count(pattern, "**") > maxStars || strings.Count(pattern, "{") > maxStars {
		return nil, fmt.Errorf("%.40q is too long a pattern: want at most %d bytes, %d \"**\" and %[3]d braces", pattern, maxGlob, maxStars)
	}
	if !doublestar.ValidatePattern(pattern) {
		return nil, fmt.Errorf("%q is not a valid pattern", pattern)
	}
	return func(path string) bool { return doublestar.MatchUnvalidated(pattern, path) }, nil
}
