package doctask

import (
	"bytes"
	"regexp"
	"strings"
)

// line is one line of a task's own text.
type line struct {
	start, end int // offsets into the document, without the line break
	text       string
}

// ownLines returns the lines of section i's own text below its heading, without
// fenced code.
func (d *document) ownLines(i int) []line {
	s := d.md.Sections[i]
	at := d.bodyStart(i)
	var lines []line
	fence := ""
	for at < s.OwnEnd {
		end, next := lineEnd(d.src, at, s.OwnEnd)
		text := string(d.src[at:end])
		mark := fenceMark(text)
		switch {
		case fence == "" && mark != "":
			fence = mark
		case fence != "":
			// A closing fence has only the same character, at least as often.
			if strings.HasPrefix(mark, fence) && strings.Trim(strings.TrimSpace(text), fence[:1]) == "" {
				fence = ""
			}
		default:
			lines = append(lines, line{at, end, text})
		}
		at = next
	}
	return lines
}

// lineEnd returns where the line at an offset ends, and where the next begins.
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

// fenceMark returns the three or more backticks or tildes that a line begins with,
// after blanks and list markers; "" for any other line.
func fenceMark(text string) string {
	text = strings.TrimLeft(text, " \t>-*+")
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(text, c)
		if n := len(text) - len(rest); n >= 3 && (c == "~" || !strings.Contains(rest, "`")) {
			return text[:n]
		}
	}
	return ""
}

// bodyStart returns where the text below section i's heading begins.
func (d *document) bodyStart(i int) int {
	s := d.md.Sections[i]
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

// fieldFormats are the ways to write a field, by precedence: "* Status: x",
// "- Status: x" and "**Status:** x", also in a list item.
var fieldFormats = []*regexp.Regexp{
	regexp.MustCompile(`^[ \t]*\*[ \t]*([A-Za-z][A-Za-z-]*):[ \t]*(.*?)[ \t]*$`),
	regexp.MustCompile(`^[ \t]*-[ \t]*([A-Za-z][A-Za-z-]*):[ \t]*(.*?)[ \t]*$`),
	regexp.MustCompile(`^[ \t]*(?:[-*+][ \t]+)?\*\*([A-Za-z][A-Za-z-]*):\*\*[ \t]*(.*?)[ \t]*$`),
}

// field is the value of a field and its place.
type field struct {
	value      string
	start, end int // offsets of the value in the document
}

// fieldOf finds a field by its exact name. ok is false if it is absent or empty in
// every format.
func fieldOf(lines []line, name string) (f field, ok bool) {
	for _, format := range fieldFormats {
		for _, l := range lines {
			m := format.FindStringSubmatchIndex(l.text)
			if m == nil || l.text[m[2]:m[3]] != name || m[4] == m[5] {
				continue
			}
			return field{strings.ReplaceAll(l.text[m[4]:m[5]], `\_`, "_"), l.start + m[4], l.start + m[5]}, true
		}
	}
	return field{}, false
}

// emptyField finds a line that names a field without a value.
func emptyField(lines []line, name string) (f field, ok bool) {
	for _, format := range fieldFormats {
		for _, l := range lines {
			if m := format.FindStringSubmatchIndex(l.text); m != nil && l.text[m[2]:m[3]] == name && m[4] == m[5] {
				end := l.start + len(strings.TrimRight(l.text, " \t"))
				return field{"", end, l.end}, true
			}
		}
	}
	return field{}, false
}

var linkLine = regexp.MustCompile(`^[ \t]*(?:[-*+][ \t]+)?→[ \t]*(.+?)[ \t]*$`)

// link returns the target of the task's "→" line. document is set for an
// @reference: the target with its anchor and without the "@".
func link(lines []line) (text, document string) {
	for _, l := range lines {
		m := linkLine.FindStringSubmatch(l.text)
		if m == nil {
			continue
		}
		if ref, ok := strings.CutPrefix(m[1], "@"); ok {
			document, _, _ = strings.Cut(ref, " ")
		}
		return m[1], document
	}
	return "", ""
}
