package suggest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

// hints lists words in the names of parameters that take a kind of literal.
var hints = map[toolsearch.Kind][]string{
	toolsearch.URL:      {"url", "uri", "link", "href", "website", "endpoint", "webpage"},
	toolsearch.Email:    {"email", "mail", "recipient", "to", "cc", "bcc", "address", "attendees", "recipients"},
	toolsearch.Channel:  {"channel"},
	toolsearch.Person:   {"user", "username", "member", "assignee", "person", "login"},
	toolsearch.FilePath: {"path", "file", "filename", "filepath", "directory", "dir", "folder", "paths", "files", "source", "destination"},
}

// freeText lists words in the names of parameters that take a quoted string.
var freeText = []string{"content", "text", "message", "body", "title", "name", "subject", "query", "description", "comment", "keyword", "keywords", "term", "value", "label", "summary", "note"}

// arguments assigns literals to the inputs of a tool. A literal fits a parameter whose name
// suggests its kind, or whose name has a word that precedes the literal ("limit 5",
// "title 'x'"). An array takes every literal that fits it best. A literal that fits two
// parameters equally well is not assigned. Several tools can use one literal.
func arguments(t *catalog.Tool, literals []toolsearch.Literal) map[string]any {
	args := map[string]any{}
	arrays := map[string]bool{}
	for _, l := range literals {
		var fits []*catalog.Parameter
		best := 0
		for i := range t.Takes {
			p := &t.Takes[i]
			if strings.Contains(p.Path, ".") || args[p.Path] != nil && !arrays[p.Path] {
				continue
			}
			g := fitOf(l, p)
			if g == 0 && slices.Contains(p.Types, "array") && !slices.Contains(p.Types, "string") {
				g = fitOf(l, element(t, p))
				arrays[p.Path] = arrays[p.Path] || g > 0
			}
			if g > best {
				best, fits = g, []*catalog.Parameter{p}
			} else if g == best && g > 0 {
				fits = append(fits, p)
			}
		}
		if len(fits) > 1 {
			fits = slices.DeleteFunc(fits, func(p *catalog.Parameter) bool { return !p.Required })
		}
		if len(fits) != 1 {
			continue
		}
		p := fits[0]
		if !arrays[p.Path] {
			args[p.Path] = valueOf(l, p)
			continue
		}
		list, _ := args[p.Path].([]any)
		args[p.Path] = append(list, valueOf(l, element(t, p)))
	}
	return args
}

// element returns a copy of an array parameter with the type of its elements, string if
// the schema has none.
func element(t *catalog.Tool, p *catalog.Parameter) *catalog.Parameter {
	var schema struct {
		Properties map[string]struct {
			Items struct{ Type string }
		}
	}
	e := *p
	e.Types = []string{"string"}
	_ = json.Unmarshal(t.Input, &schema) // after an error, the fields that fit are set
	if items := schema.Properties[p.Name].Items.Type; items != "" {
		e.Types = []string{items}
	}
	return &e
}

// fitOf grades a literal for a parameter: 3 because of the word before it, 2 because of its
// kind, 0 if it does not fit.
func fitOf(l toolsearch.Literal, p *catalog.Parameter) int {
	if valueOf(l, p) == nil {
		return 0
	}
	name := toolsearch.Words(p.Name)
	if l.Before != "" && slices.ContainsFunc(name, func(w string) bool { return toolsearch.Singular(w) == toolsearch.Singular(l.Before) && w != "to" }) {
		return 3
	}
	if entity := toolsearch.EntityOf(p, toolsearch.Purpose{}); len(entity) > 0 && toolsearch.Singular(l.Before) == entity[len(entity)-1] {
		return 3 // "pull request 17" for pullNumber
	}
	wants := func(list []string) bool {
		return slices.ContainsFunc(name, func(w string) bool { return slices.Contains(list, w) })
	}
	switch l.Kind {
	case toolsearch.URL, toolsearch.Email, toolsearch.Channel, toolsearch.Person, toolsearch.FilePath:
		if wants(hints[l.Kind]) {
			return 2
		}
	case toolsearch.Quoted:
		for kind, words := range hints {
			if kind.Is(l.Text) && wants(words) {
				return 2
			}
		}
		if wants(freeText) {
			return 2
		}
	}
	return 0
}

// valueOf converts a literal to a type of the parameter. It returns nil if it cannot.
func valueOf(l toolsearch.Literal, p *catalog.Parameter) any {
	takes := func(t string) bool { return len(p.Types) == 0 || slices.Contains(p.Types, t) }
	if l.Kind == toolsearch.Number {
		if n, err := strconv.ParseInt(l.Text, 10, 64); err == nil && (takes("integer") || takes("number")) {
			return n
		}
		if f, err := strconv.ParseFloat(l.Text, 64); err == nil && takes("number") {
			return f
		}
	}
	if takes("string") {
		return l.Text
	}
	return nil
}
