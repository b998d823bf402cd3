package doctask

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cairn/internal/text/markdown"
)

// line is one line of a task's own text.
type line struct {
	start, end int // offsets into the document, without the line break
	text       string
	code       bool // in fenced code or an HTML comment: neither a field nor a check box
}

// ownLines returns the lines of section i's own text below its heading.
func (d *document) ownLines(i int) []line {
	from, to := d.bodyStart(i), d.md().Sections[i].OwnEnd
	fences := markdown.Fences(d.src[from:to])
	var lines []line
	comment := false
	for at := from; at < to; {
		end, next := lineEnd(d.src, at, to)
		l := line{start: at, end: end, text: string(d.src[at:end])}
		if len(fences) > 0 && at >= from+fences[0].End {
			fences = fences[1:]
		}
		switch {
		case !comment && len(fences) > 0 && at >= from+fences[0].Start:
			l.code = true
		case comment || strings.HasPrefix(strings.TrimLeft(l.text, " "), "<!--"):
			l.code = true
			comment = !strings.Contains(l.text, "-->")
		}
		lines = append(lines, l)
		at = next
	}
	return lines
}

// lineEnd returns the end of the line at an offset, and the start of the next line.
func lineEnd(src []byte, at, limit int) (end, next int) {
	n := bytes.IndexAny(src[at:limit], "\r\n")
	if n < 0 {
		return limit, limit
	}
	end, next = at+n, at+n+1
	if src[end] == '\r' && next < limit && src[next] == '\n' {
		next++
	}
	return end, next
}

// bodyStart returns the start of the text below the heading of section i.
func (d *document) bodyStart(i int) int {
	s := d.md().Sections[i]
	if s.Level == 0 {
		return s.Start
	}
	end, next := lineEnd(d.src, s.Start, s.OwnEnd)
	if strings.HasPrefix(strings.TrimLeft(string(d.src[s.Start:end]), " "), "#") {
		return next
	}
	for next < s.OwnEnd { // a setext heading ends with its underline
		at := next
		end, next = lineEnd(d.src, at, s.OwnEnd)
		if text := strings.TrimSpace(string(d.src[at:end])); text != "" && (strings.Trim(text, "=") == "" || strings.Trim(text, "-") == "") {
			return next
		}
	}
	return s.OwnEnd
}

// fieldFormats match the forms of a field in the order of precedence: "* Status: x",
// "- Status: x", "**Status:** x" or "**Status**: x", also in a list item, "+ Status: x" and
// "Status: x". The value does not include the markup of a line break at its end.
var fieldFormats = sync.OnceValue(func() (all []*regexp.Regexp) {
	const name, value = `([A-Za-z](?:[A-Za-z -]*[A-Za-z])?)`, `[ \t]*(.*?)[ \t]*(?:\\|<br ?/?>)?[ \t]*$`
	for _, format := range []string{
		`^[ \t]*\*[ \t]*` + name + `:`,
		`^[ \t]*-[ \t]*` + name + `:`,
		`^[ \t]*(?:[-*+][ \t]+)?(?:\*\*|__)` + name + `(?::(?:\*\*|__)|(?:\*\*|__)[ \t]*:)`,
		`^[ \t]*\+[ \t]*` + name + `:`,
		`^[ \t]*` + name + `:`,
	} {
		all = append(all, regexp.MustCompile(format+value))
	}
	return all
})

// proseFields are words that also begin ordinary sentences. They are fields only after a
// list marker or in emphasis.
var proseFields = []string{"Note", "Completed"}

// field is the value of a field with its offsets.
type field struct {
	value      string
	start, end int // offsets of the value in the document
}

// fieldOf finds a field by its exact name. ok is false if the field is absent or empty.
func fieldOf(lines []line, name string) (f field, ok bool) {
	return findField(lines, name, func(value string) bool { return value != "" })
}

// emptyField finds a field without a value.
func emptyField(lines []line, name string) (f field, ok bool) {
	return findField(lines, name, func(value string) bool { return value == "" })
}

// hasField reports whether one of the lines sets a field to a value.
func hasField(lines []line, name, value string) bool {
	_, ok := findField(lines, name, func(v string) bool { return strings.ReplaceAll(v, `\_`, "_") == value })
	return ok
}

// findField finds the first field whose value is wanted. The offsets of an empty value span the
// blanks after the name.
func findField(lines []line, name string, want func(value string) bool) (field, bool) {
	formats := fieldFormats()
	if slices.Contains(proseFields, name) {
		formats = formats[:len(formats)-1]
	}
	for _, format := range formats {
		for _, l := range lines {
			if l.code || !strings.Contains(l.text, name) { // faster than the expression
				continue
			}
			m := format.FindStringSubmatchIndex(l.text)
			if m == nil || l.text[m[2]:m[3]] != name || !want(l.text[m[4]:m[5]]) {
				continue
			}
			f := field{strings.ReplaceAll(l.text[m[4]:m[5]], `\_`, "_"), l.start + m[4], l.start + m[5]}
			if f.value == "" {
				f.start = l.start + len(strings.TrimRight(l.text[:m[4]], " \t"))
			}
			return f, true
		}
	}
	return field{}, false
}

var linkLine = regexp.MustCompile(`^[ \t]*(?:[-*+][ \t]+)?→[ \t]*(.+?)[ \t]*$`)

// link returns the target of a task's "→" line. If the target is an @reference, document is
// the reference without the "@".
func link(lines []line) (text, document string) {
	for _, l := range lines {
		m := linkLine.FindStringSubmatch(l.text)
		if m == nil || l.code {
			continue
		}
		if ref, ok := strings.CutPrefix(m[1], "@"); ok {
			document, _, _ = strings.Cut(ref, " ")
		}
		return m[1], document
	}
	return "", ""
}
