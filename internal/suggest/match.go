package suggest

import (
	"slices"
	"strings"
	"unicode"

	"cairn/internal/catalog"
)

// Grades of evidence that an output can serve as an input, larger is stronger.
const (
	Exact    = 1.00 // the same name, however it is cased
	Alias    = 0.85 // the same words in other form or order, or an accepted synonym
	Partial  = 0.70 // a telling word in common, or one name ends or starts with the other
	TypeOnly = 0.40 // nothing but the type speaks for it
)

// Grade is the evidence of two names and types alone: Exact, Alias, Partial or
// 0. Incompatible types give 0 whatever the names.
func Grade(out, in catalog.Parameter) float64 {
	if !compatible(out.Types, in.Types) {
		return 0
	}
	return gradeNames(words(out.Name), words(in.Name))
}

// compatible reports whether a value of one of the types out is accepted where
// one of the types in is asked for: equal types, an unknown type with any,
// numbers and truth values written as strings, an integer as a number, an array
// where an object is asked for.
func compatible(out, in []string) bool {
	if len(out) == 0 || len(in) == 0 {
		return true
	}
	for _, o := range out {
		for _, i := range in {
			switch {
			case o == i,
				i == "string" && (o == "number" || o == "integer" || o == "boolean"),
				o == "integer" && i == "number",
				o == "array" && i == "object":
				return true
			}
		}
	}
	return false
}

// synonyms are names that stand for each other between tools.
var synonyms = map[string][]string{
	"content": {"text", "data", "body", "payload", "json", "input"},
	"text":    {"content", "data", "body", "message"},
	"path":    {"file", "file path", "filepath", "location"},
	"url":     {"uri", "href", "link", "endpoint"},
	"result":  {"output", "response", "data", "value"},
	"input":   {"data", "content", "body", "payload"},
	"json":    {"content", "data", "body", "text"},
}

// common are words that say nothing of what a value is about: sharing one of
// them alone is no evidence ("user id", "order id").
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
			l[i] = singular(w)
		}
		slices.Sort(l)
	}
	return slices.Equal(x, y)
}

// words takes a name apart at case changes, digits' ends and punctuation, in
// lower case: "userID2", "user-id" and "user_id" all start with "user id".
func words(name string) []string {
	var list []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			list = append(list, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			continue
		}
		if i > 0 && unicode.IsUpper(r) {
			lowerBefore := unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1])
			lowerAfter := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if lowerBefore || unicode.IsUpper(runes[i-1]) && lowerAfter {
				flush()
			}
		}
		word = append(word, r)
	}
	flush()
	return list
}

// singular takes a plain English plural ending off.
func singular(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case len(w) > 4 && (strings.HasSuffix(w, "sses") || strings.HasSuffix(w, "xes") || strings.HasSuffix(w, "ches")):
		return w[:len(w)-2]
	case len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us"):
		return w[:len(w)-1]
	}
	return w
}
