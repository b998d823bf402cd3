package toolsearch

import (
	"cmp"
	"slices"
	"strings"

	"cairn/internal/store"
	"cairn/internal/store/legs"
	"cairn/internal/toolbox/catalog"
)

// nameText returns the text to embed for a name.
func nameText(t *catalog.Tool) string {
	return cmp.Or(strings.Join(Words(t.BareName()), " "), t.Name)
}

// OwnName returns the words of a tool's name without those of its server, which all its
// tools share: "create", "issue" for linear_create_issue of the server linear-mcp.
func OwnName(t *catalog.Tool) []string {
	words, server := Words(t.BareName()), Words(t.Server)
	own := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(server, w) })
	if len(own) == 0 {
		return words
	}
	return own
}

// vectorText returns the text to embed for a tool. It has no parameters, because many tools
// share them and vectors would be less distinct.
func vectorText(t *catalog.Tool) string {
	if t.Description == "" {
		return nameText(t)
	}
	return nameText(t) + ". " + t.Description
}

// pairText returns the text of a tool that is read together with a request.
func pairText(t *catalog.Tool) string {
	var b strings.Builder
	if server := strings.Join(Words(t.Server), " "); server != "" {
		b.WriteString(server + ": ")
	}
	b.WriteString(nameText(t))
	if d := strings.Join(strings.Fields(t.Description), " "); d != "" {
		b.WriteString(". " + strings.ToValidUTF8(d[:min(len(d), mostPairText)], ""))
	}
	var inputs []string
	for i := range t.Takes {
		if !strings.Contains(t.Takes[i].Path, ".") && len(inputs) < mostPairInputs {
			inputs = append(inputs, strings.Join(Words(t.Takes[i].Name), " "))
		}
	}
	if len(inputs) > 0 {
		b.WriteString(" | " + strings.Join(inputs, ", "))
	}
	return b.String()
}

// mostPairText and mostPairInputs bound the bytes of a description and the inputs of a tool in
// pairText.
const mostPairText, mostPairInputs = 160, 6

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
			body.WriteString(" . " + strings.Join(Words(p.Name), " ") + " " + p.Description)
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
