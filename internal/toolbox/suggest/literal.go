package suggest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

// Kind is the kind of a literal.
type Kind string

// The kinds of literals in the order of the search. Literals do not overlap: an earlier
// kind has precedence.
const (
	URL      Kind = "url"
	Email    Kind = "email"
	Quoted   Kind = "quoted"
	FilePath Kind = "path"
	Number   Kind = "number"
)

// Literal is a value in an intent that can be passed to a tool.
type Literal struct {
	Kind  Kind
	Text  string // without its quotes
	Start int    // byte offset in the intent, of the quote if there is one
	// Before is the preceding word in lower case, "" if there is none.
	Before string
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
		{Quoted, regexp.MustCompile("\"([^\"\n]{1,400})\"|“([^”\n]{1,400})”|`([^`\n]{1,400})`|(?:^|[\\s(])'([^'\n]{1,400})'")},
		{FilePath, regexp.MustCompile(`(?:~|\.{1,2})?/[\w.@~-]+(?:/[\w.@~-]*)*[\w@~-]|[A-Za-z]:\\[\w.\\-]+|\b[\w-]+(?:/[\w.-]+)*\.(?:md|txt|json|ya?ml|toml|csv|tsv|xml|html?|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg|mp[34]|wav|zip|tar|gz|log|sql|db|go|py|js|ts|rs|java|c|h|cpp|sh)\b`)},
		{Number, regexp.MustCompile(`-?\d+(?:\.\d+)?`)},
	}
})

// maxLiterals bounds the literals of one intent.
const maxLiterals = 50

// literalsOf returns the quoted strings, URLs, e-mail addresses, paths and numbers of an
// intent, in their order.
func literalsOf(intent string) []Literal {
	intent = toolsearch.Unquoted(intent)
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
			found = append(found, Literal{Kind: p.kind, Text: intent[start:end], Start: start, Before: wordBefore(intent, m[0])})
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

// hints lists words in the names of parameters that take a kind of literal.
var hints = map[Kind][]string{
	URL:      {"url", "uri", "link", "href", "website", "endpoint", "webpage"},
	Email:    {"email", "mail", "recipient", "to", "cc", "bcc", "address", "attendees", "recipients"},
	FilePath: {"path", "file", "filename", "filepath", "directory", "dir", "folder", "paths", "files", "source", "destination"},
}

// freeText lists words in the names of parameters that take a quoted string.
var freeText = []string{"content", "text", "message", "body", "title", "name", "subject", "query", "description", "comment", "keyword", "keywords", "term", "value", "label", "summary", "note"}

// arguments assigns literals to the inputs of a tool. A literal fits a parameter whose name
// suggests its kind, or whose name has a word that precedes the literal ("limit 5",
// "title 'x'"). An array takes every literal that fits it best. A literal that fits two
// parameters equally well is not assigned. Several tools can use one literal.
func arguments(t *catalog.Tool, literals []Literal) map[string]any {
	args := map[string]any{}
	arrays := map[string]bool{}
	for _, l := range literals {
		var fits []*catalog.Parameter
		best := 0
		for i := range t.Takes {
			p := &t.Takes[i]
			if strings.Contains(p.Path, ".") || args[p.Path] != nil && !arrays[p.Path] {
				continue
			}
			g := l.fit(p)
			if l.inArray(p) && g == 0 {
				if g = l.fit(element(t, p)); g > 0 {
					arrays[p.Path] = true
				}
			}
			if g > best {
				best, fits = g, []*catalog.Parameter{p}
			} else if g == best && g > 0 {
				fits = append(fits, p)
			}
		}
		if len(fits) > 1 {
			fits = slices.DeleteFunc(fits, func(p *catalog.Parameter) bool { return !p.Required })
		}
		if len(fits) != 1 {
			continue
		}
		p := fits[0]
		if !arrays[p.Path] {
			args[p.Path] = l.value(p)
			continue
		}
		list, _ := args[p.Path].([]any)
		args[p.Path] = append(list, l.value(element(t, p)))
	}
	return args
}

// inArray reports whether a parameter takes a literal only as an element of an array.
func (l Literal) inArray(p *catalog.Parameter) bool {
	return slices.Contains(p.Types, "array") && !slices.Contains(p.Types, "string")
}

// element returns a copy of an array parameter with the type of its elements, string if
// the schema has none.
func element(t *catalog.Tool, p *catalog.Parameter) *catalog.Parameter {
	var schema struct {
		Properties map[string]struct {
			Items struct{ Type string }
		}
	}
	e := *p
	e.Types = []string{"string"}
	_ = json.Unmarshal(t.Input, &schema) // after an error, the fields that fit are set
	if items := schema.Properties[p.Name].Items.Type; items != "" {
		e.Types = []string{items}
	}
	return &e
}

// fit grades a literal for a parameter: 3 because of the word before it, 2 because of its
// kind, 0 if it does not fit.
func (l Literal) fit(p *catalog.Parameter) int {
	if l.value(p) == nil {
		return 0
	}
	name := toolsearch.Words(p.Name)
	if l.Before != "" && slices.ContainsFunc(name, func(w string) bool { return toolsearch.Singular(w) == toolsearch.Singular(l.Before) && w != "to" }) {
		return 3
	}
	if entity := toolsearch.EntityOf(p, toolsearch.Purpose{}); len(entity) > 0 && toolsearch.Singular(l.Before) == entity[len(entity)-1] {
		return 3 // "pull request 17" for pullNumber
	}
	wants := func(list []string) bool {
		return slices.ContainsFunc(name, func(w string) bool { return slices.Contains(list, w) })
	}
	switch l.Kind {
	case URL, Email, FilePath:
		if wants(hints[l.Kind]) {
			return 2
		}
	case Quoted:
		for _, p := range literalPatterns() {
			if p.kind != Number && p.kind != Quoted && p.pattern.FindString(l.Text) == l.Text && wants(hints[p.kind]) {
				return 2
			}
		}
		if wants(freeText) {
			return 2
		}
	}
	return 0
}

// value converts the literal to a type of the parameter. It returns nil if it cannot.
func (l Literal) value(p *catalog.Parameter) any {
	takes := func(t string) bool { return len(p.Types) == 0 || slices.Contains(p.Types, t) }
	if l.Kind == Number {
		if n, err := strconv.ParseInt(l.Text, 10, 64); err == nil && (takes("integer") || takes("number")) {
			return n
		}
		if f, err := strconv.ParseFloat(l.Text, 64); err == nil && takes("number") {
			return f
		}
	}
	if takes("string") {
		return l.Text
	}
	return nil
}
