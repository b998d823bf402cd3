package markdown

import (
	"bytes"
	"slices"
	"strings"
)

// plainRST returns a piece of reStructuredText without its markup, for embedding and
// snippets. It removes adornments, table borders, list markers, labels, comments, the
// names and options of directives, the names of roles, link targets and blank lines. It
// keeps the arguments of directives, the texts of roles and links, and literal blocks.
func plainRST(src []byte) string {
	r := rstReader{literal: -1, comment: -1}
	for at := 0; at < len(src); {
		line, next := lineAt(src, at)
		r.line(bytes.TrimRight(line, " \t\r"))
		at = next
	}
	r.flush()
	return string(bytes.TrimRight(r.out, "\n"))
}

type rstReader struct {
	out  []byte
	text []byte // lines whose inline markup is still to be removed
	// literal and comment are the indentation of the line that opened the current literal
	// block or comment, -1 for none.
	literal, comment int
	options          bool // the previous line is a directive or one of its options
}

func (r *rstReader) line(line []byte) {
	body := bytes.TrimLeft(line, " \t")
	if len(body) == 0 {
		r.options = false
		r.flush()
		return
	}
	indent := len(line) - len(body)
	if r.comment >= 0 && indent > r.comment {
		return
	}
	if r.literal >= 0 && indent > r.literal {
		if r.options && isRSTField(body) {
			return
		}
		r.flush()
		r.out = append(append(r.out, line...), '\n')
		r.options = false
		return
	}
	r.literal, r.comment = -1, -1
	switch {
	case r.options && isRSTField(body):
		return
	case isRSTBorder(body):
		return
	case bytes.HasPrefix(body, []byte(".. ")), string(body) == "..":
		r.explicit(strings.TrimSpace(string(body[2:])), indent)
		return
	}
	r.options = false
	if rest, ok := bytes.CutSuffix(body, []byte("::")); ok {
		r.literal = indent
		if body = bytes.TrimRight(rest, " "); len(body) == 0 {
			return
		}
		if len(body) == len(rest) {
			body = append(bytes.Clone(body), ':')
		}
	}
	switch {
	case len(body) > 1 && body[1] == ' ' && strings.IndexByte("*-+|", body[0]) >= 0:
		body = body[2:]
	case bytes.HasPrefix(body, []byte("#. ")):
		body = body[3:]
	case isRSTField(body):
		body = body[1:]
	}
	r.text = append(append(r.text, bytes.TrimSpace(body)...), '\n')
}

// rstLiteral are the directives whose content is not reStructuredText.
var rstLiteral = []string{"code-block", "code", "sourcecode", "highlight", "parsed-literal", "math", "raw", "prompt", "literalinclude", "ipython", "graphviz", "productionlist"}

// explicit reads a line of explicit markup; rest is its text after the two dots.
func (r *rstReader) explicit(rest string, indent int) {
	if rest == "" || rest[0] == '_' {
		r.comment = indent
		return
	}
	if rest[0] == '|' {
		if _, directive, ok := strings.Cut(rest[1:], "| "); ok {
			rest = directive
		}
	}
	if rest[0] == '[' {
		if _, note, ok := strings.Cut(rest, "] "); ok {
			r.text = append(append(r.text, note...), '\n')
			return
		}
	}
	name, argument, ok := strings.Cut(rest, "::")
	if !ok || strings.ContainsAny(name, " \t") {
		r.comment = indent
		return
	}
	r.options = true
	if slices.Contains(rstLiteral, name) {
		r.literal = indent
	}
	argument = strings.TrimSpace(argument)
	switch {
	case argument == "":
	case slices.Contains(rstObjects, withoutDomain(name)): // a signature
		r.flush()
		r.out = append(append(r.out, argument...), '\n')
	default:
		r.text = append(append(r.text, argument...), '\n')
	}
}

// flush moves text to out without its inline markup.
func (r *rstReader) flush() {
	r.out = appendRSTInline(r.out, r.text)
	r.text = r.text[:0]
}

// isRSTField reports whether a line begins with a field name, such as ":param x:".
func isRSTField(line []byte) bool {
	if len(line) < 3 || line[0] != ':' {
		return false
	}
	end := bytes.IndexByte(line[1:min(len(line), 100)], ':') + 1
	return end > 1 && (end+1 == len(line) || line[end+1] == ' ') && bytes.IndexByte(line[:end], '`') < 0 && line[1] != ' '
}

// isRSTBorder reports whether a line is the adornment of a title or a table border.
func isRSTBorder(line []byte) bool {
	if isAdornment(line) {
		return true
	}
	return len(line) > 4 && (len(bytes.Trim(line, "= ")) == 0 || len(bytes.Trim(line, "- ")) == 0 || line[0] == '+' && len(bytes.Trim(line, "+-=|")) == 0)
}

// appendRSTInline appends text without its inline markup: code in backquotes, *emphasis*,
// :role:`text <target>`, `text <target>`_ and |substitution|.
func appendRSTInline(out, text []byte) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		switch c {
		case '\\':
			if i+1 < len(text) && isPunct(text[i+1]) {
				out = append(out, text[i+1])
				i += 2
				continue
			}
			if i+1 < len(text) && text[i+1] == ' ' {
				i += 2
				continue
			}
		case '`':
			if end := rstQuoted(text, i); end > 0 {
				out = appendRSTQuoted(out, text, i, end)
				for i = end; i < len(text) && text[i] == '_' && text[end-2] != '`'; i++ {
				}
				continue
			}
		case ':':
			if n := rstRole(text[i:]); n > 0 {
				i += n
				continue
			}
		case '*', '|':
			n := 1
			for c == '*' && i+n < len(text) && text[i+n] == '*' {
				n++
			}
			if end := rstSpan(text, i, n); end > 0 {
				out = append(out, text[i+n:end]...)
				i = end + n
				continue
			}
			out = append(out, text[i:i+n]...)
			i += n
			continue
		}
		out = append(out, c)
		i++
	}
	return out
}

// maxRSTSpan is the maximum length of inline markup in bytes.
const maxRSTSpan = 1 << 10

// rstQuoted returns the offset after the quoted text that begins at i: code in double
// backquotes, or text in single backquotes after a role, before an underscore or between
// blanks or punctuation. It returns 0 if there is none.
func rstQuoted(text []byte, i int) int {
	rest := text[i:min(len(text), i+maxRSTSpan)]
	if bytes.HasPrefix(rest, []byte("``")) {
		if n := bytes.Index(rest[2:], []byte("``")); n > 0 {
			return i + 2 + n + 2
		}
		return 0
	}
	n := bytes.IndexByte(rest[1:], '`') + 1
	if n < 2 {
		return 0
	}
	end := i + n + 1
	if i > 0 && text[i-1] == ':' || end < len(text) && text[end] == '_' {
		return end
	}
	if mayBegin(text, i) && !isBlank(rest[1]) && !isBlank(rest[n-1]) && (end == len(text) || !isWordByte(text[end]) && text[end] != '`') {
		return end
	}
	return 0
}

// appendRSTQuoted appends the content of text[start:end], which rstQuoted found.
func appendRSTQuoted(out, text []byte, start, end int) []byte {
	inner := text[start+1 : end-1]
	if inner[0] == '`' {
		return append(out, inner[1:len(inner)-1]...)
	}
	if at := bytes.LastIndexByte(inner, '<'); at > 0 && inner[len(inner)-1] == '>' {
		inner = bytes.TrimSpace(inner[:at])
	}
	return append(out, bytes.TrimLeft(inner, "~!")...)
}

// rstRole returns the length of the role that text begins with, such as 6 for ":func:`",
// or 0 if there is none. A backquote must follow the role; it does not count.
func rstRole(text []byte) int {
	for i := 1; i < min(len(text), 60); i++ {
		switch c := text[i]; {
		case c == '`':
			if text[i-1] == ':' && i > 2 && rstQuoted(text, i) > 0 {
				return i
			}
			return 0
		case c != ':' && c != '-' && c != '+' && c != '.' && !isWordByte(c):
			return 0
		}
	}
	return 0
}

// mayBegin reports whether inline markup may begin at i: at the start, after a blank or
// after an opening punctuation mark.
func mayBegin(text []byte, i int) bool {
	return i == 0 || isBlank(text[i-1]) || strings.IndexByte("'\"([{<-/:", text[i-1]) >= 0
}

// rstSpan returns the offset of the closing run of the emphasis or substitution that the
// n markers at i open, or 0 if they open none.
func rstSpan(text []byte, i, n int) int {
	if n > 2 || !mayBegin(text, i) {
		return 0
	}
	from := i + n
	if from >= len(text) || isBlank(text[from]) {
		return 0
	}
	mark := text[i:from]
	for at := from + 1; at+n <= min(len(text), i+maxRSTSpan); at++ {
		if text[at] != mark[0] || isBlank(text[at-1]) || !bytes.HasPrefix(text[at:], mark) {
			continue
		}
		if after := at + n; after == len(text) || isBlank(text[after]) || text[after] != mark[0] && isPunct(text[after]) {
			return at
		}
	}
	return 0
}
