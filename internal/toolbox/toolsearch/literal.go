package toolsearch

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Kind is the kind of a literal.
type Kind string

// The kinds of literals in the order of the search. Literals do not overlap: an earlier
// kind has precedence.
const (
	URL      Kind = "web page"
	Email    Kind = "email address"
	Quoted   Kind = "quoted text"
	Channel  Kind = "channel"
	Person   Kind = "person"
	FilePath Kind = "file"
	Number   Kind = "number"
)

// Literal is a value in an intent that can be passed to a tool.
type Literal struct {
	Kind  Kind
	Text  string // without its quotes or its mark, as in "#ops"
	Start int    // byte offset of Text in the intent
	// Before is the preceding word in lower case, "" if there is none.
	Before string

	from, to int // with its quotes or its mark
}

// Is reports whether a text is a literal of a kind.
func (k Kind) Is(text string) bool {
	for _, p := range literalPatterns() {
		if p.kind == k {
			return p.pattern.FindString(text) == text
		}
	}
	return false
}

type literalPattern struct {
	kind    Kind
	pattern *regexp.Regexp
}

// literalPatterns are compiled when first used, because that takes a millisecond.
var literalPatterns = sync.OnceValue(func() []literalPattern {
	return []literalPattern{
		{URL, regexp.MustCompile(`\bhttps?://[^\s"'“”<>)\]]+[^\s"'“”<>)\].,;:!?]`)},
		{Email, regexp.MustCompile(`[\p{L}\d._%+-]+@[\p{L}\d-]+(?:\.[\p{L}\d-]+)+`)},
		{Quoted, regexp.MustCompile("\"([^\"\n]{1,400})\"|“([^”\n]{1,400})”|`([^`\n]{1,400})`|(?:^|\\B)'([^'\n]{1,400})'(?:$|\\B)")},
		{Channel, regexp.MustCompile(`(?:^|\B)#(\p{L}[\w-]*)`)},
		{Person, regexp.MustCompile(`(?:^|\B)@(\p{L}[\w-]*)`)},
		{FilePath, regexp.MustCompile(`(?:~|\.{1,2})?/[\w.@~-]+(?:/[\w.@~-]*)*[\w@~-]|\b[A-Za-z]:\\[\w.\\-]+|\b[\w-]+(?:/[\w.-]+)*\.(?:md|txt|json|ya?ml|toml|csv|tsv|xml|html?|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg|mp[34]|wav|zip|tar|gz|log|sql|db|go|py|js|ts|rs|java|c|h|cpp|sh)\b`)},
		{Number, regexp.MustCompile(`-?\d+(?:\.\d+)?`)},
	}
})

// maxLiterals bounds the literals of one intent.
const maxLiterals = 50

// Literals returns the quoted strings, URLs, e-mail addresses, channels, persons, paths and
// numbers of an intent, in their order.
func Literals(intent string) []Literal {
	intent = Unquoted(intent)
	taken := make([]bool, len(intent))
	var found []Literal
	for _, p := range literalPatterns() {
		for _, m := range p.pattern.FindAllStringSubmatchIndex(intent, maxLiterals) {
			start, end := m[0], m[1]
			for g := 2; g+1 < len(m); g += 2 {
				if m[g] >= 0 {
					start, end = m[g], m[g+1]
				}
			}
			if start == end || slices.Contains(taken[start:end], true) || p.kind == Number && !standsAlone(intent, start, end) {
				continue
			}
			for i := m[0]; i < m[1]; i++ {
				taken[i] = true
			}
			found = append(found, Literal{Kind: p.kind, Text: intent[start:end], Start: start, Before: wordBefore(intent, m[0]), from: m[0], to: m[1]})
		}
	}
	slices.SortFunc(found, func(a, b Literal) int { return a.Start - b.Start })
	return found[:min(len(found), maxLiterals)]
}

// standsAlone reports whether a number is not part of a word, a date, a time or a
// version.
func standsAlone(s string, start, end int) bool {
	bad := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 || strings.IndexByte("_:/-%", c) >= 0
	}
	if start > 0 && (bad(s[start-1]) || s[start-1] == '.') {
		return false
	}
	if end < len(s) && (bad(s[end]) || s[end] == '.' && end+1 < len(s) && bad(s[end+1])) {
		return false
	}
	return true
}

func wordBefore(s string, at int) string {
	f := strings.FieldsFunc(s[:at], func(r rune) bool { return strings.ContainsRune(" \t\n:=#,(\"'", r) })
	if len(f) == 0 {
		return ""
	}
	return strings.ToLower(f[len(f)-1])
}
