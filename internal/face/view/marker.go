package view

import (
	"strings"

	"cairn/internal/store/keyword"
	"cairn/internal/text/query"
)

// Marker finds the words of a query in text.
type Marker struct{ *keyword.Marker }

// NewMarker returns the Marker of a query as a person typed it.
func NewMarker(typed string) Marker { return Marker{keyword.NewMarker(query.Parse(typed))} }

// Mark returns text drawn in parts: draw receives each word, and whether it is a word of the
// query, and each piece of text between words.
func (m Marker) Mark(text string, draw func(part string, found bool) string) string {
	var b strings.Builder
	m.Words(text, func(part string, found bool) { b.WriteString(draw(part, found)) })
	return b.String()
}

// Pick returns at most n lines in their order. It prefers lines with a word of the query, and
// then the first.
func (m Marker) Pick(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	chosen := make([]bool, len(lines))
	left := n
	for _, wantMatch := range []bool{true, false} {
		for i, line := range lines {
			if left > 0 && !chosen[i] && (!wantMatch || m.In(line) != nil) {
				chosen[i] = true
				left--
			}
		}
	}
	var picked []string
	for i, line := range lines {
		if chosen[i] {
			picked = append(picked, line)
		}
	}
	return picked
}
