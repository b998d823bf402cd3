// Package highlight finds the comments, strings, numbers and keywords of source code for
// display in colour. It scans the text once without a grammar, so its time is linear for
// any input.
package highlight

import (
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a Span.
type Kind uint8

// The kinds. Heading occurs only in Markdown.
const (
	Comment Kind = iota + 1
	String
	Number
	Keyword
	Heading
	Inserted // lines of a diff
	Deleted
)

// Span is text of one kind: the bytes [Start, End).
type Span struct {
	Start, End int
	Kind       Kind
}

// Known reports whether Code supports a language. The name is one that follows the fence
// of a code block: "go", "c++", "yml".
func Known(language string) bool {
	language = strings.ToLower(language)
	return language == "diff" || language == "patch" || languages[language] != nil
}

// Code returns the spans of source code in order and without overlap. It returns nil for
// an unknown language.
func Code(language, text string) []Span {
	language = strings.ToLower(language)
	if language == "diff" || language == "patch" {
		return diff(text)
	}
	l := languages[language]
	if l == nil {
		return nil
	}
	var spans []Span
	for at := 0; at < len(text); {
		end, kind := l.next(text, at)
		if kind != 0 {
			spans = append(spans, Span{at, end, kind})
		}
		at = end
	}
	return spans
}

// next returns the end of the token at an offset, and its kind, 0 for plain text.
func (l *lexis) next(text string, at int) (end int, kind Kind) {
	rest := text[at:]
	for _, mark := range l.line {
		if strings.HasPrefix(rest, mark) && (mark != "#" || at == 0 || strings.IndexByte(" \t\n;", text[at-1]) >= 0) {
			return at + until(rest, "\n", 0), Comment
		}
	}
	if l.open != "" && strings.HasPrefix(rest, l.open) {
		return at + until(rest, l.shut, len(l.shut)), Comment
	}
	c := rest[0]
	switch {
	case strings.IndexByte(l.quotes, c) >= 0:
		if n := quoted(rest, c); n > 1 {
			return at + n, String
		}
		return at + 1, 0
	case word(c):
		n, number := 1, c >= '0' && c <= '9'
		for n < len(rest) && (word(rest[n]) || number && rest[n] == '.') {
			n++
		}
		if number {
			return at + n, Number
		}
		name := rest[:n]
		if l.fold {
			name = strings.ToLower(name)
		}
		if l.keywords[name] {
			return at + n, Keyword
		}
		return at + n, 0
	}
	_, n := utf8.DecodeRuneInString(rest)
	return at + n, 0
}

// until returns the offset of mark plus more, or the length of text if mark is absent.
func until(text, mark string, more int) int {
	if i := strings.Index(text, mark); i >= 0 {
		return i + more
	}
	return len(text)
}

// maxSingle is the maximum length in bytes of a string in single quotes. A quote without
// another one within this distance is an apostrophe. The bound keeps the time linear.
const maxSingle = 1000

// quoted returns the length of the string at the start of text. A string in double quotes
// ends with its line.
func quoted(text string, quote byte) int {
	if triple := strings.Repeat(string(quote), 3); strings.HasPrefix(text, triple) {
		return 3 + until(text[3:], triple, 3)
	}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == quote:
			return i + 1
		case text[i] == '\\' && quote != '`':
			i++
		case quote == '\'' && (text[i] == '\n' || i == maxSingle):
			return 1
		case text[i] == '\n' && quote == '"':
			return i
		}
	}
	if quote == '\'' {
		return 1
	}
	return len(text)
}

func word(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

func diff(text string) (spans []Span) {
	at := 0
	for line := range strings.Lines(text) {
		end := at + len(strings.TrimRight(line, "\n"))
		switch {
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
			spans = append(spans, Span{at, end, Comment})
		case line[0] == '+':
			spans = append(spans, Span{at, end, Inserted})
		case line[0] == '-':
			spans = append(spans, Span{at, end, Deleted})
		}
		at += len(line)
	}
	return spans
}
