package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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
