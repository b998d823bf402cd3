package retriever

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/store/keyword"
)

// A snippet has at most snippetRunes runes from at most snippetLines consecutive lines.
const (
	snippetRunes = 300
	snippetLines = 3
)

// snippetOf returns the first group of up to snippetLines consecutive lines of passage, a
// text without markup, with the most distinct terms of the query, joined to one line.
// If no line matches, it returns the beginning. If the first line is the heading, which
// results show next to the snippet, snippet skips it and does not count its terms,
// unless it is the only line. found holds the terms in the passage.
func snippetOf(t *keyword.Marker, heading, passage string) (snippet string, found map[string]bool) {
	found = map[string]bool{}
	var lines []string
	for _, line := range strings.FieldsFunc(passage, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "", found
	}
	var shown map[string]bool
	if len(lines) > 1 && lines[0] == heading {
		shown, lines = t.In(heading), lines[1:]
		maps.Copy(found, shown)
	}
	hits := make([]map[string]bool, len(lines))
	for i, line := range lines {
		hits[i] = t.In(line)
		maps.Copy(found, hits[i])
		for term := range shown {
			delete(hits[i], term)
		}
	}
	from, to := densest(lines, hits, snippetLines, snippetRunes, func(i int) bool { return len(hits[i]) > 0 })
	if utf8.RuneCountInString(lines[from]) > snippetRunes {
		return window(t, lines[from]), found
	}
	return strings.Join(lines[from:to], " "), found
}

// densest returns the range of at most most consecutive texts with the most distinct terms that
// have at most room runes, with a blank between them. A range begins with the first text or
// with one that may begin it.
func densest(texts []string, terms []map[string]bool, most, room int, may func(i int) bool) (from, to int) {
	best := -1
	for i := range texts {
		if i > 0 && !may(i) {
			continue
		}
		seen, size, end := map[string]bool{}, 0, i
		for ; end < min(i+most, len(texts)); end++ {
			if size += utf8.RuneCountInString(texts[end]); size > room && end > i {
				break
			}
			size++
			maps.Copy(seen, terms[end])
		}
		if len(seen) > best {
			from, to, best = i, end, len(seen)
		}
	}
	return from, to
}

// commentMarkers begin lines of comments. A space after a mark that is also an operator
// or a directive distinguishes the two.
var commentMarkers = []string{"///", "//!", "//", "# ", "-- ", ";;", "% ", "* "}

// joinComments removes the marker of each line of a comment after the first, because a
// snippet joins the lines.
func joinComments(text string) string {
	var b strings.Builder
	previous := ""
	for line := range strings.Lines(text) {
		comment := strings.TrimLeft(line, " \t")
		i := slices.IndexFunc(commentMarkers, func(m string) bool { return strings.HasPrefix(comment, m) })
		if i < 0 {
			previous = ""
		} else if m := commentMarkers[i]; m == previous {
			line = comment[len(m):]
		} else {
			previous = m
		}
		b.WriteString(line)
	}
	return b.String()
}

// window shortens a long line to the consecutive words with the most distinct terms.
func window(t *keyword.Marker, line string) string {
	words := strings.Fields(line)
	matches := make([]map[string]bool, len(words))
	for i, w := range words {
		matches[i] = t.In(w)
	}
	const room = snippetRunes - 2 // without an ellipsis at both ends
	// Three words precede the first match.
	from, to := densest(words, matches, len(words), room, func(i int) bool { return matches[min(i+3, len(words)-1)] != nil })
	if utf8.RuneCountInString(words[from]) > room {
		return string([]rune(words[from])[:room]) + "…"
	}
	out := strings.TrimRightFunc(strings.Join(words[from:to], " "), unicode.IsSpace)
	if from > 0 {
		out = "…" + out
	}
	if to < len(words) {
		out += "…"
	}
	return out
}
