package walk

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// class is one character or a set of characters. No set contains the slash.
type class struct {
	set    bool
	negate bool
	ranges []rune // pairs of the first and the last character
}

func (c *class) has(r rune) bool {
	if r == '/' && c.set {
		return false
	}
	for i := 0; i < len(c.ranges); i += 2 {
		if c.ranges[i] <= r && r <= c.ranges[i+1] {
			return !c.negate
		}
	}
	return c.negate
}

// anyClass has every character but the slash.
var anyClass = class{set: true, negate: true}

// parseGlob parses a pattern of gitignore(5), relative to its folder. The result is nil for
// a pattern that never matches in git.
func parseGlob(glob string) []state {
	out := []state{{flags: 1 << setStart}}
	last := func() *state { return &out[len(out)-1] }
	for i := 0; i < len(glob); {
		switch glob[i] {
		case '*':
			end := i + len(glob[i:]) - len(strings.TrimLeft(glob[i:], "*"))
			whole := end > i+1 && (i == 0 || glob[i-1] == '/')
			switch {
			case whole && end == len(glob): // everything below
				out = append(out, state{anyClass, 1<<setStay | 1<<setDeep})
			case whole && glob[end] == '/': // any folders, or none
				if len(out) == 1 || out[len(out)-2].flags>>setSkip&1 == 0 {
					last().flags |= 1<<setStay | 1<<setDeep | 1<<setSkip
					out = append(out, state{class{ranges: []rune("//")}, last().flags & (1 << setStart)})
				}
				end++
			default: // any characters but slashes
				last().flags |= 1 << setStay
			}
			i = end
		case '?':
			out = append(out, state{class: anyClass})
			i++
		case '[':
			c, n := bracket(glob[i:])
			if n == 0 {
				return nil
			}
			out = append(out, state{class: c})
			i += n
		default:
			r, n := quoted(glob[i:])
			if n == 0 {
				return nil
			}
			out = append(out, state{class: class{ranges: []rune{r, r}}})
			i += n
		}
	}
	return out
}

// quoted returns the first character of s, without a backslash that quotes it, and the
// length of both in bytes; 0 for a single backslash.
func quoted(s string) (rune, int) {
	quote := 0
	if s[0] == '\\' {
		quote = 1
	}
	r, n := utf8.DecodeRuneInString(s[quote:])
	if n == 0 {
		return 0, 0
	}
	return r, quote + n
}

// posixClasses maps the names of POSIX classes to pairs as in class.ranges.
var posixClasses = map[string]string{
	"alnum": "azAZ09", "alpha": "azAZ", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09", "graph": "!~",
	"lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "  \t\r", "upper": "AZ", "xdigit": "09afAF",
}

// bracket parses the character class at the beginning of s and returns its length in
// bytes, 0 if it is not closed. A "]" in the first place is a member, as in POSIX.
func bracket(s string) (c class, n int) {
	c.set = true
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		c.negate = true
		i++
	}
	for first := i; i < len(s); {
		if s[i] == ']' && i > first {
			return c, i + 1
		}
		if rest, ok := strings.CutPrefix(s[i:], "[:"); ok {
			name, _, closed := strings.Cut(rest, ":]")
			if pairs, known := posixClasses[name]; closed && known {
				c.ranges = append(c.ranges, []rune(pairs)...)
				i += len("[:") + len(name) + len(":]")
				continue
			}
		}
		low, n := quoted(s[i:])
		if n == 0 {
			return c, 0
		}
		i += n
		high := low
		if len(s) > i+1 && s[i] == '-' && s[i+1] != ']' {
			if high, n = quoted(s[i+1:]); n == 0 {
				return c, 0
			}
			i += 1 + n
		}
		c.ranges = append(c.ranges, low, high)
	}
	return c, 0
}

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
