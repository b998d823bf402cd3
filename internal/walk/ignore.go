package walk

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ruleSet holds the rules of one .gitignore or .cairnignore file.
type ruleSet struct {
	dir   string // the folder of the file, relative to the root the walk began in, "" or ending in "/"
	up    string // for a file above the root: the path from its folder to the root, ending in "/"
	rules []rule
}

// rule is one pattern. Git documents the format in gitignore(5).
type rule struct {
	negate  bool
	dirOnly bool
	base    bool   // matched against the last element only
	glob    string // in doublestar's syntax
	kind    globKind
}

type globKind uint8

const (
	general globKind = iota // doublestar decides
	literal                 // glob is the name
	suffix                  // glob is what follows a leading asterisk
)

// maxIgnoreFile is the size in bytes beyond which an ignore file is not read.
const maxIgnoreFile = 1 << 20

func parseRules(src []byte, dir, up string) *ruleSet {
	set := &ruleSet{dir: dir, up: up}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	for line := range bytes.SplitSeq(src, []byte("\n")) {
		if r, ok := parseRule(string(bytes.TrimSuffix(line, []byte("\r")))); ok {
			set.rules = append(set.rules, r)
		}
	}
	if len(set.rules) == 0 {
		return nil
	}
	return set
}

// CheckPattern reports why a line would have no effect in an ignore file; nil
// when it has one.
func CheckPattern(pattern string) error {
	if _, ok := parseRule(pattern); !ok || strings.Contains(pattern, "\n") {
		return fmt.Errorf("ignore pattern %q, want one line in the syntax of .gitignore, such as \"drafts/\" or \"*.tmp.md\"", pattern)
	}
	return nil
}

func parseRule(line string) (rule, bool) {
	var r rule
	line = trimTrailingBlanks(line)
	if line == "" || line[0] == '#' {
		return r, false
	}
	if line[0] == '!' {
		r.negate = true
		line = line[1:]
	}
	if strings.HasSuffix(line, "/") && !strings.HasSuffix(line, `\/`) {
		r.dirOnly = true
		line = line[:len(line)-1]
	}
	if line == "" {
		return r, false
	}
	r.base = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	switch {
	case !strings.ContainsAny(line, `*?[\`):
		r.kind, r.glob = literal, line
	case r.base && line[0] == '*' && !strings.ContainsAny(line[1:], `*?[\`):
		r.kind, r.glob = suffix, line[1:]
	default:
		r.glob = toDoublestar(line)
		if !doublestar.ValidatePattern(r.glob) {
			return r, false // git, too, matches nothing with an unclosed bracket
		}
	}
	return r, true
}

// trimTrailingBlanks removes blanks at the end that no backslash quotes.
func trimTrailingBlanks(line string) string {
	for strings.HasSuffix(line, " ") {
		quotes := 0
		for i := len(line) - 2; i >= 0 && line[i] == '\\'; i-- {
			quotes++
		}
		if quotes%2 == 1 {
			break
		}
		line = line[:len(line)-1]
	}
	return line
}

// toDoublestar translates what the two syntaxes write differently: braces are
// literal in gitignore, and "x/**" does not match x itself.
func toDoublestar(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; c {
		case '\\':
			b.WriteByte(c)
			if i++; i < len(glob) {
				b.WriteByte(glob[i])
			}
		case '{', '}':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '[':
			class, n := bracket(glob[i:])
			b.WriteString(class)
			i += n - 1
		default:
			b.WriteByte(c)
		}
	}
	out := b.String()
	if strings.HasSuffix(out, "/**") {
		out += "/*"
	}
	return out
}

var posixClasses = strings.NewReplacer(
	"[:alnum:]", "a-zA-Z0-9", "[:alpha:]", "a-zA-Z", "[:digit:]", "0-9", "[:lower:]", "a-z", "[:upper:]", "A-Z",
	"[:xdigit:]", "0-9a-fA-F", "[:space:]", " \t\n\r\f\v", "[:blank:]", " \t", "[:punct:]", `!-/:-@\[-`+"`{-~",
)

// bracket translates the character class glob begins with and returns its
// length. A "]" that comes first is a member, as in POSIX.
func bracket(glob string) (string, int) {
	i := 1
	if i < len(glob) && (glob[i] == '!' || glob[i] == '^') {
		i++
	}
	head := glob[:i]
	first := i
	for ; i < len(glob); i++ {
		switch {
		case glob[i] == '\\':
			i++
		case strings.HasPrefix(glob[i:], "[:"):
			if n := strings.Index(glob[i:], ":]"); n > 0 {
				i += n + 1
			}
		case glob[i] == ']' && i > first:
			inner := posixClasses.Replace(glob[first:i])
			if inner[0] == ']' {
				inner = `\` + inner
			}
			return head + inner + "]", i + 1
		}
	}
	return "[", 1 // unclosed: not a valid pattern
}

// match returns what the last rule that fits says: ignore (1), keep (-1), or
// nothing (0). path is relative to the root.
func (s *ruleSet) match(path, name string, isDir bool) int {
	rel := s.up + path[len(s.dir):]
	for i := len(s.rules) - 1; i >= 0; i-- {
		r := &s.rules[i]
		if r.dirOnly && !isDir {
			continue
		}
		subject := rel
		if r.base {
			subject = name
		}
		var hit bool
		switch r.kind {
		case literal:
			hit = subject == r.glob
		case suffix:
			hit = strings.HasSuffix(subject, r.glob)
		default:
			hit = doublestar.MatchUnvalidated(r.glob, subject)
		}
		if hit {
			if r.negate {
				return -1
			}
			return 1
		}
	}
	return 0
}

// ignored asks the rule sets from the innermost out; the first answer holds.
func ignored(sets []*ruleSet, path, name string, isDir bool) int {
	for i := len(sets) - 1; i >= 0; i-- {
		if m := sets[i].match(path, name, isDir); m != 0 {
			return m
		}
	}
	return 0
}
