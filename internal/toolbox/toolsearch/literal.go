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
	List     Kind = "list" // in JSON, or with single quotes
	Date     Kind = "date"
	Code     Kind = "code" // letters and digits, as in "user-12"
	Number   Kind = "number"
	Phrase   Kind = "name" // capitalised words
)

// Literal is a value in an intent that can be passed to a tool.
type Literal struct {
	Kind  Kind
	Text  string // without its quotes or its mark, as in "#ops"
	Start int    // byte offset of Text in the intent

	from, to int // with its quotes or its mark
}

// Is reports whether a text is a literal of a kind.
func (k Kind) Is(text string) bool { return patternOf(k).FindString(text) == text }

func patternOf(k Kind) *regexp.Regexp {
	patterns := literalPatterns()
	return patterns[slices.IndexFunc(patterns, func(p literalPattern) bool { return p.kind == k })].pattern
}

type literalPattern struct {
	kind    Kind
	pattern *regexp.Regexp
}

// literalPatterns are compiled when first used, because that takes a millisecond.
var literalPatterns = sync.OnceValue(func() []literalPattern {
	return []literalPattern{
		{List, regexp.MustCompile(`\[[^\[\]\n]*[^\[\]\s][^\[\]\n]*\]`)},
		{URL, regexp.MustCompile(`\bhttps?://[^\s"'“”<>)\]]+[^\s"'“”<>)\].,;:!?]`)},
		{Email, regexp.MustCompile(`[\p{L}\d._%+-]+@[\p{L}\d-]+(?:\.[\p{L}\d-]+)+`)},
		{Quoted, regexp.MustCompile("\"([^\"\n]{1,400})\"|“([^”\n]{1,400})”|‘([^’\n]{1,400})’|`([^`\n]{1,400})`|(?:^|\\B)'([^'\n]{1,400})'(?:$|\\B)")},
		{Channel, regexp.MustCompile(`(?:^|\B)#(\p{L}[\w-]*)`)},
		{Person, regexp.MustCompile(`(?:^|\B)@(\p{L}[\w-]*)`)},
		{FilePath, regexp.MustCompile(`(?:~|\.{1,2})?/[\w.@~-]+(?:/[\w.@~-]*)*[\w@~-]|\b[A-Za-z]:\\[\w.\\-]+|\b[\w-]+(?:/[\w.-]+)*\.(?:md|txt|json|ya?ml|toml|csv|tsv|xml|html?|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg|mp[34]|wav|zip|tar|gz|log|sql|db|go|py|js|ts|rs|java|c|h|cpp|sh)\b`)},
		{Date, regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b|\b\d{1,2}/\d{1,2}/\d{4}\b`)},
		{Code, regexp.MustCompile(`\b[A-Za-z]+\d[A-Za-z\d]*(?:[_-][A-Za-z\d]+)*\b|\b[A-Za-z]+(?:[_-][A-Za-z]+)*[_-]\d[A-Za-z\d_-]*\b|\b\d+[A-Z][A-Za-z\d]*\b`)},
		{Number, regexp.MustCompile(`-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?`)},
		{Phrase, regexp.MustCompile(`\p{Lu}[\pL\d&'.-]*[\pL\d](?:(?:,? | of | the | de )(?:\p{Lu}[\pL\d&'-]*|\d+\b))*`)},
	}
})

// maxLiterals bounds the literals of one intent.
const maxLiterals = 50

// Literals returns the values in an intent, in their order.
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
			if p.kind == Phrase {
				start, end = phraseAt(intent, start, end)
			}
			if start >= end || slices.Contains(taken[start:end], true) || (p.kind == Number || p.kind == Code) && !standsAlone(intent, start, end) {
				continue
			}
			for i := m[0]; i < m[1]; i++ {
				taken[i] = true
			}
			found = append(found, Literal{Kind: p.kind, Text: intent[start:end], Start: start, from: m[0], to: m[1]})
		}
	}
	slices.SortFunc(found, func(a, b Literal) int { return a.Start - b.Start })
	return found[:min(len(found), maxLiterals)]
}

// standsAlone reports whether a number or a code is not part of a word, a date, a time, a share or a
// version. It may have a unit.
func standsAlone(s string, start, end int) bool {
	digit := func(i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }
	if start > 0 {
		if c := s[start-1]; alphanumeric(c) || c >= 0x80 || strings.IndexByte("._/-%", c) >= 0 || c == ':' && digit(start-2) {
			return false
		}
	}
	return end == len(s) || strings.IndexByte("_/%", s[end]) < 0 && !(strings.IndexByte(".-,:", s[end]) >= 0 && digit(end+1))
}

// phraseAt returns the part of capitalised words without those that only begin a sentence. It is
// empty for one word at the beginning, and for a short acronym, which is more often the kind of a
// value.
func phraseAt(s string, start, end int) (int, int) {
	before := strings.TrimRight(s[:start], " ")
	opens := before == "" || strings.ContainsAny(before[len(before)-1:], ".!?:\n\"")
	for word, _, more := strings.Cut(s[start:end], " "); opens && opener(word) || word == "I" || strings.HasPrefix(word, "I'"); word, _, more = strings.Cut(s[start:end], " ") {
		if !more {
			return start, start
		}
		start += len(word) + 1
	}
	opens = opens && strings.TrimSpace(s[len(before):start]) == ""
	text := strings.TrimSuffix(strings.TrimRight(ownCase.ReplaceAllString(s[start:end], ""), ".,"), "'s")
	if opens && !strings.Contains(text, " ") || len(text) < 5 && strings.ToUpper(text) == text {
		return start, start
	}
	return start, start + len(text)
}

// ownCase matches the speaker after a name, as in "Furthermore, I'm".
var ownCase = regexp.MustCompile(`,? I(?:'\w+)?$`)
