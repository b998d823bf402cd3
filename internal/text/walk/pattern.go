package walk

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of a glob. The time of a match grows with each "**".
const (
	maxGlob  = 500
	maxStars = 4
)

// Glob returns a function that reports whether a path matches the pattern: "*" matches any
// characters except "/", "**" any folders, "?" one character, [a-z] one of a set, and
// {a,b} one of several strings.
func Glob(pattern string) (func(path string) bool, error) {
	if len(pattern) > maxGlob || strings.Count(pattern, "**") > maxStars || strings.Count(pattern, "{") > maxStars {
		return nil, fmt.Errorf("%.40q is too long a pattern: want at most %d bytes, %d \"**\" and %[3]d braces", pattern, maxGlob, maxStars)
	}
	if !doublestar.ValidatePattern(pattern) {
		return nil, fmt.Errorf("%q is not a valid pattern", pattern)
	}
	return func(path string) bool { return doublestar.MatchUnvalidated(pattern, path) }, nil
}
