package suggest

import (
	"slices"
	"strings"

	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

// Grades of the evidence that an output can be used as an input. Larger is stronger.
const (
	Exact    = 1.00 // the same name in any case
	Alias    = 0.85 // the same words in another form or order, or a known synonym
	Partial  = 0.70 // a distinctive word in common, or one name ends or starts with the other
	TypeOnly = 0.40 // compatible types alone
)

// Grade grades an output as the value of an input by name: Exact, Alias, Partial
// or 0. It is 0 for incompatible types.
func Grade(out, in catalog.Parameter) float64 {
	if !compatible(out.Types, in.Types) {
		return 0
	}
	return gradeNames(toolsearch.Words(out.Name), toolsearch.Words(in.Name))
}

// gives reports whether a tool has an output with at least a grade for an input.
func gives(t *catalog.Tool, in *catalog.Parameter, least float64) bool {
	return slices.ContainsFunc(t.Gives, func(out catalog.Parameter) bool { return Grade(out, *in) >= least })
}

// compatible reports whether an input of the types in accepts a value of the types out. An
// unknown type is compatible with every type.
func compatible(out, in []string) bool {
	if len(out) == 0 || len(in) == 0 {
		return true
	}
	return slices.ContainsFunc(in, func(i string) bool {
		return slices.ContainsFunc(out, func(o string) bool { return o == i || slices.Contains(accepted[i], o) })
	})
}

// accepted lists the other types that an input of a type accepts.
var accepted = map[string][]string{"string": {"number", "integer", "boolean"}, "number": {"integer"}, "object": {"array"}}

// synonyms lists names that tools use for the same value.
var synonyms = map[string][]string{
	"content": {"text", "data", "body", "payload", "json", "input"},
	"text":    {"content", "data", "body", "message"},
	"path":    {"file", "file path", "filepath", "location"},
	"url":     {"uri", "href", "link", "endpoint"},
	"result":  {"output", "response", "data", "value"},
	"input":   {"data", "content", "body", "payload"},
	"json":    {"content", "data", "body", "text"},
}

// common lists words that do not identify a value. Names that share only such words do not
// match ("user id", "order id").
var common = []string{"id", "name", "type", "value", "data", "list", "number", "string", "info", "information", "status", "count", "code", "key", "date", "time", "new", "result", "object", "array", "int", "bool", "is", "of", "the", "to"}

func gradeNames(out, in []string) float64 {
	a, b := strings.Join(out, " "), strings.Join(in, " ")
	switch {
	case a == "" || b == "":
		return 0
	case strings.ReplaceAll(a, " ", "") == strings.ReplaceAll(b, " ", ""):
		return Exact
	case slices.Contains(synonyms[a], b), slices.Contains(synonyms[b], a), sameWords(out, in):
		return Alias
	}
	for _, w := range out {
		if slices.Contains(in, w) && !slices.Contains(common, w) {
			return Partial
		}
	}
	// "jsonstring" and "json": one name starts or ends with the other.
	x, y := strings.ReplaceAll(a, " ", ""), strings.ReplaceAll(b, " ", "")
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(x) >= 4 && !slices.Contains(common, x) && (strings.HasPrefix(y, x) || strings.HasSuffix(y, x)) {
		return Partial
	}
	return 0
}

func sameWords(a, b []string) bool {
	x, y := slices.Clone(a), slices.Clone(b)
	for _, l := range [][]string{x, y} {
		for i, w := range l {
			l[i] = toolsearch.Singular(w)
		}
		slices.Sort(l)
	}
	return slices.Equal(x, y)
}
