// Package view is the model of an answer for people: its notes, the words to mark in it, and
// graphs of it. The terminal and the pages lay it out. Programs receive the answer itself.
package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cairn/graphrank"
	"cairn/internal/store/keyword"
	"cairn/internal/text/query"
	"cairn/retriever"
)

// Notes returns remarks about an answer, which name commands instead of tools. They do not
// name the next page.
func Notes(a *retriever.Answer) []string {
	notes := a.Notes()
	for i := range notes {
		notes[i] = commandNames.Replace(notes[i])
	}
	return notes
}

// commandNames replaces the names of tools in a hint with commands.
var commandNames = strings.NewReplacer("call the tool index, or run `cairn index`", "run `cairn index`", "call the tool index", "run `cairn index`", "the tool index", "`cairn index`", "the tool status", "`cairn status`")

// Trail returns the headings above a result, or else the title of its document.
func Trail(r *retriever.Result) []string {
	if len(r.Headings) == 0 && r.Title != "" {
		return []string{r.Title}
	}
	return r.Headings
}

// Count returns a number with its noun, with a plural s unless the number is 1.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Kinds returns the numbers of files by kind, as in index.Status, in one line.
func Kinds(counts map[string]int) string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(kinds, ", ")
}

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
	var matching, others []int
	for i, line := range lines {
		if m.In(line) != nil {
			matching = append(matching, i)
		} else {
			others = append(others, i)
		}
	}
	var picked []string
	for _, i := range slices.Sorted(slices.Values(append(matching, others...)[:n])) {
		picked = append(picked, lines[i])
	}
	return picked
}

// UsageEdge is an edge between two tools or documents that are used together.
type UsageEdge struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Type   string  `json:"type"`
	Source string  `json:"source"`
	Weight float64 `json:"weight"`
	Count  float64 `json:"count"`
}

// UsageEdges returns the edges of a co-usage graph, the heaviest and then the most often seen
// first. around selects the edges of one node; "" means all.
func UsageEdges(g *graphrank.Graph, around string) []UsageEdge {
	edges := []UsageEdge{}
	for e := range g.Edges() {
		if around == "" || e.From == around || e.To == around {
			edges = append(edges, UsageEdge{From: e.From, To: e.To, Type: e.Type.String(), Source: e.Source.String(), Weight: e.Weight(), Count: e.Count})
		}
	}
	slices.SortStableFunc(edges, func(x, y UsageEdge) int {
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), cmp.Compare(y.Count, x.Count))
	})
	return edges
}
