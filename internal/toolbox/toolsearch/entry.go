package toolsearch

import (
	"strings"

	"cairn/internal/store"
	"cairn/internal/store/legs"
	"cairn/internal/toolbox/catalog"
)

// nameText returns the text to embed for a name.
func nameText(t *catalog.Tool) string {
	if w := Words(t.BareName()); len(w) > 0 {
		return strings.Join(w, " ")
	}
	return t.Name
}

// vectorText returns the text to embed for a tool. It has no parameters, because many tools
// share them and vectors would be less distinct.
func vectorText(t *catalog.Tool) string {
	if t.Description == "" {
		return nameText(t)
	}
	return nameText(t) + ". " + t.Description
}

// entryOf returns the entry of a tool. It is found by the words of its name as the title,
// the description, and the top level of inputs and outputs.
func entryOf(t *catalog.Tool) legs.Entry {
	var body strings.Builder
	body.WriteString(t.Description)
	for _, list := range [][]catalog.Parameter{t.Takes, t.Gives} {
		for _, p := range list {
			if strings.Contains(p.Path, ".") {
				continue
			}
			body.WriteString(" . ")
			body.WriteString(strings.Join(Words(p.Name), " "))
			body.WriteByte(' ')
			body.WriteString(p.Description)
		}
	}
	name := nameText(t)
	return legs.Entry{ID: t.ID, Words: store.KeywordEntry{Title: name, Body: body.String()}, Texts: []string{name, vectorText(t)}}
}

// Distinct returns texts without duplicates, in their order.
func Distinct(texts []string) []string {
	seen := make(map[string]bool, len(texts))
	var once []string
	for _, t := range texts {
		if !seen[t] {
			seen[t] = true
			once = append(once, t)
		}
	}
	return once
}
