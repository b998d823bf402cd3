package retriever

import (
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
		addAll(found, shown)
	}
	hits := make([]map[string]bool, len(lines))
	for i, line := range lines {
		hits[i] = t.In(line)
		addAll(found, hits[i])
		for term := range shown {
			delete(hits[i], term)
		}
	}
	best, bestCount := 0, -1
	for i := range lines {
		seen := map[string]bool{}
		size := 0
		count := 0
		for j := i; j < min(i+snippetLines, len(lines)); j++ {
			if size += utf8.RuneCountInString(lines[j]) + 1; j > i && size > snippetRunes {
				break
			}
			for term := range hits[j] {
				if !seen[term] {
					seen[term] = true
					count++
				}
			}
		}
		if len(hits[i]) == 0 && i > 0 { // a snippet begins with a matching line
			continue
		}
		if count > bestCount {
			best, bestCount = i, count
		}
	}
	out := lines[best]
	if utf8.RuneCountInString(out) > snippetRunes {
		return window(t, out), found
	}
	for _, line := range lines[best+1 : min(best+snippetLines, len(lines))] {
		if utf8.RuneCountInString(out)+1+utf8.RuneCountInString(line) > snippetRunes {
			break
		}
		out += " " + line
	}
	return out, found
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

func addAll(to, from map[string]bool) {
	for term := range from {
		to[term] = true
	}
}

// window shortens a long line to the consecutive words with the most distinct terms.
func window(t *keyword.Marker, line string) string {
	words := strings.Fields(line)
	matches := make([]map[string]bool, len(words))
	for i, w := range words {
		matches[i] = t.In(w)
	}
	const room = snippetRunes - 2 // without an ellipsis at both ends
	best, bestEnd, bestCount := 0, 0, -1
	for i := 0; i < len(words); i++ {
		if i > 0 && matches[min(i+3, len(words)-1)] == nil { // show three words before a match
			continue
		}
		seen := map[string]bool{}
		size, end, count := 0, i, 0
		for ; end < len(words); end++ {
			if size += utf8.RuneCountInString(words[end]); size > room {
				break
			}
			size++
			for term := range matches[end] {
				if !seen[term] {
					seen[term] = true
					count++
				}
			}
		}
		if count > bestCount {
			best, bestEnd, bestCount = i, end, count
		}
	}
	if bestEnd == best { // a single word exceeds room
		return strings.ToValidUTF8(cut(words[best], room), "") + "…"
	}
	out := strings.TrimRightFunc(strings.Join(words[best:bestEnd], " "), unicode.IsSpace)
	if best > 0 {
		out = "…" + out
	}
	if bestEnd < len(words) {
		out += "…"
	}
	return out
}

// cut returns the first n runes of s.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
