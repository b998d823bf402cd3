package suggest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"cairn/internal/text/query"
	"cairn/internal/toolbox/catalog"
	"cairn/internal/toolbox/toolsearch"
)

// hints lists words in the names of inputs that take a kind of literal. A quoted text has no
// kind, so its words are those of free text.
var hints = map[toolsearch.Kind][]string{
	toolsearch.URL:      {"url", "uri", "link", "href", "website", "endpoint", "webpage"},
	toolsearch.Email:    {"email", "mail", "recipient", "to", "cc", "bcc", "address", "attendees", "recipients"},
	toolsearch.Channel:  {"channel"},
	toolsearch.Person:   {"user", "username", "member", "assignee", "person", "login"},
	toolsearch.FilePath: {"path", "file", "filename", "filepath", "directory", "dir", "folder", "paths", "files", "source", "destination"},
	toolsearch.Quoted:   freeText,
}

// freeText lists words in the names of inputs that take a quoted text.
var freeText = []string{"content", "text", "message", "body", "title", "name", "subject", "query", "description", "comment", "keyword", "keywords", "term", "value", "label", "summary", "note"}

// Grades of the evidence that a value is meant for an input.
const (
	byHint = 0.9  // the name of the input suggests the kind
	byText = 0.86 // a quoted text for an input of free text; less is not sure
	byWord = 0.5  // the description has a word next to the value
	faded  = 0.15

	longNumber = 6 // digits of a number that identifies rather than counts
)

// unsure are the kinds of values that can be other words.
var unsure = []toolsearch.Kind{toolsearch.Phrase, toolsearch.Code, toolsearch.Date, toolsearch.List}

// values are the values of an intent with the words around them.
type values struct {
	intent string
	list   []value
	words  []token
}

// value is a literal, or a list of successive literals of one kind.
type value struct {
	toolsearch.Literal
	end   int
	items []toolsearch.Literal // nil for a literal
}

// token is a singular word in lower case with its byte offsets.
type token struct {
	text     string
	from, to int
}

var tokenPattern = regexp.MustCompile(`\pL+|\d+`)

// markPattern matches an identifier with signs in it: "neal_wu", "two-sum", ".results", "a[b=c]",
// "0x3f". clearMark matches those that are no ordinary compound.
var (
	markPattern = regexp.MustCompile(`(?:^|[\s(])([-.]?[\pL\d]{2,}(?:[-._:/=@\[\]]+[\pL\d]+)+\]?|\.\pL[\w-]*|\d+\pL+\d[\pL\d]*)(?:$|[\s)]|[.,;:!?](?:\s|$))`)
	clearMark   = regexp.MustCompile(`[_/=@\[]|\pL[.:]\pL|^\.|^0x`)
)

// between matches the text between the entries of a list in words.
var between = regexp.MustCompile("^[\"'”`]?\\s*(?:,|and|,\\s*and|&)\\s*[\"'“`]?$")

func valuesOf(intent string) *values {
	v := &values{intent: intent}
	for _, at := range tokenPattern.FindAllStringIndex(intent, -1) {
		v.words = append(v.words, token{toolsearch.Singular(strings.ToLower(intent[at[0]:at[1]])), at[0], at[1]})
	}
	literals := toolsearch.Literals(intent)
	end := func(l toolsearch.Literal) int { return l.Start + len(l.Text) }
	for _, at := range markPattern.FindAllStringSubmatchIndex(intent, -1) {
		mark := toolsearch.Literal{Kind: toolsearch.Code, Text: intent[at[2]:at[3]], Start: at[2]}
		within := func(o toolsearch.Literal) bool { return o.Start < at[3] && at[2] < end(o) }
		longer := func(o toolsearch.Literal) bool { return within(o) && len(o.Text) >= len(mark.Text) }
		if strings.ContainsFunc(mark.Text, unicode.IsLetter) && !slices.ContainsFunc(literals, longer) {
			literals = append(slices.DeleteFunc(literals, within), mark)
		}
	}
	slices.SortFunc(literals, func(a, b toolsearch.Literal) int { return a.Start - b.Start })
	for i := 0; i < len(literals); {
		run := i + 1
		for run < len(literals) && literals[run].Kind == literals[i].Kind && between.MatchString(intent[end(literals[run-1]):literals[run].Start]) {
			run++
		}
		for _, l := range literals[i:run] {
			v.list = append(v.list, value{Literal: l, end: end(l)})
		}
		v.list = append(v.list, value{Literal: literals[i], end: end(literals[run-1]), items: literals[i:run]})
		i = run
	}
	return v
}

// span is the part of an intent that a tool serves.
type span struct{ from, to int }

func (s span) has(v *value) bool { return s.from <= v.Start && v.end <= s.to }

// inputs are the top-level inputs of a tool with what catalog.Parameter lacks.
type inputs struct {
	Required   []string // in the order of the schema
	Properties map[string]struct {
		Enum  []any
		Items struct{ Type string }
	}
}

// input is an input without a value.
type input struct {
	*catalog.Parameter
	element string   // type of the elements of an array
	words   []string // of the name
	telling []string // those that say what the value is, singular
}

// vague words of a name say nothing about the value.
var vague = []string{"id", "name", "value", "number", "of", "the", "in", "to"}

func newInput(p *catalog.Parameter, element string) *input {
	in := &input{Parameter: p, element: cmp.Or(element, "string"), words: toolsearch.Words(p.Name)}
	if in.telling = toolsearch.EntityOf(p, toolsearch.Purpose{}); len(in.telling) > 0 {
		return in // "pull request 17" for pullNumber
	}
	for _, w := range in.words {
		if !slices.Contains(vague, w) {
			in.telling = append(in.telling, toolsearch.Singular(w))
		}
	}
	if len(in.telling) == 0 {
		in.telling = in.words
	}
	return in
}

// pairing is the evidence that a value is meant for an input.
type pairing struct {
	grade float64
	input *input
	value *value
	as    any
}

// arguments assigns the values of an intent to the inputs of a tool that have none, by their
// kinds, and by the words next to them and those of the input's name or description. A value that
// suits two inputs alike goes to the required one, or to none. Only sure evidence counts if sure
// is set, and only it counts for values out of the part of the intent that the tool serves.
// Otherwise an enumerated or described option that the part mentions, a flag that it mentions, and
// values left over for as many required inputs of their kind, in order, are arguments too. skip
// names inputs that get their values from elsewhere.
func (v *values) arguments(t *catalog.Tool, part span, args map[string]any, sure bool, skip func(input string) bool) {
	var schema inputs
	if !sure || bytes.Contains(t.Input, []byte(`"array"`)) || bytes.Contains(t.Input, []byte(`"enum"`)) {
		_ = json.Unmarshal(t.Input, &schema) // after an error, the fields that fit are set
	}
	var taken []*value
	id := strings.ToLower(t.ID)
	other := func(w string) bool { return !strings.Contains(id, w) }
	free := func(l *value) bool {
		if l.Kind == toolsearch.Phrase && !slices.ContainsFunc(strings.Fields(strings.ToLower(l.Text)), other) {
			return false // it names the tool or its server
		}
		return !slices.ContainsFunc(taken, func(o *value) bool { return o.Start < l.end && l.Start < o.end })
	}
	for i := range v.list {
		for _, a := range args {
			if l := &v.list[i]; fmt.Sprint(a) == l.Text {
				taken = append(taken, l)
			}
		}
	}
	var open []*input
	var pairs []pairing
	for i := range t.Takes {
		p := &t.Takes[i]
		if strings.Contains(p.Path, ".") || args[p.Path] != nil || skip != nil && skip(p.Path) {
			continue
		}
		if p.Description == "" && strings.Contains(t.Description, p.Name) { // "limit (int): Most results" in that of the tool
			line := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(p.Name) + `(?: \(.*?\))?: *(.+)$`).FindStringSubmatch(t.Description)
			p = &catalog.Parameter{Name: p.Name, Path: p.Path, Types: p.Types, Required: p.Required, Description: strings.Join(line, "")}
		}
		rest := schema.Properties[p.Name]
		if !sure {
			if option := v.option(p, rest.Enum, part, toolsearch.Words(t.Name)); option != nil {
				args[p.Path] = option
			}
		}
		if args[p.Path] != nil || len(rest.Enum) > 0 {
			continue
		}
		in := newInput(p, rest.Items.Type)
		open = append(open, in)
		for i := range v.list {
			l := &v.list[i]
			if sure && slices.Contains(unsure, l.Kind) || !free(l) {
				continue
			}
			g := v.grade(l, in)
			if g == 0 && !sure && p.Required {
				g = v.described(l, in)
			}
			if g > 0 && (g >= byText || !sure) && (g >= byHint || part.has(l)) {
				if !part.has(l) {
					g -= faded
				}
				if as := l.as(in); as != nil {
					pairs = append(pairs, pairing{g, in, l, as})
				}
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pairing) int { return cmp.Compare(b.grade, a.grade) })
	for _, a := range pairs {
		alike := func(b pairing) bool {
			return b.value == a.value && b.input != a.input && args[b.input.Path] == nil && b.grade >= a.grade && (b.input.Required || !a.input.Required)
		}
		if args[a.input.Path] == nil && free(a.value) && !slices.ContainsFunc(pairs, alike) {
			args[a.input.Path], taken = a.as, append(taken, a.value)
		}
	}
	if !sure {
		v.leftOver(open, schema.Required, args, part, func(l *value) bool { return part.has(l) && free(l) })
	}
}

// leftOver assigns the free values of a kind to the required inputs of that kind without a value,
// in order, if there are as many, and the names of an identifier such as "acme/site" to as many
// inputs. The only input of a date may be optional. A query without a value gets the words after
// "about" or "for".
func (v *values) leftOver(open []*input, required []string, args map[string]any, part span, free func(*value) bool) {
	for _, kinds := range [][]toolsearch.Kind{{toolsearch.Number}, {toolsearch.Quoted}, {toolsearch.Phrase, toolsearch.Quoted, toolsearch.URL, toolsearch.Email, toolsearch.Code, toolsearch.Number}, {toolsearch.List}, {toolsearch.Date}} {
		var ins []*input
		for _, in := range open {
			if dated := kinds[0] == toolsearch.Date && in.dated(); args[in.Path] == nil && in.takes(kinds[0]) && (dated || in.Required) {
				ins = append(ins, in)
			}
		}
		slices.SortStableFunc(ins, func(a, b *input) int { return slices.Index(required, a.Name) - slices.Index(required, b.Name) })
		var left []*value
		for i := range v.list {
			if l := &v.list[i]; len(ins) > 0 && l.items == nil && slices.Contains(kinds, l.Kind) && free(l) && l.as(ins[0]) != nil && (l.Kind != toolsearch.Code || ins[0].numbered() || clearMark.MatchString(l.Text)) {
				left = append(left, l)
			}
		}
		if len(left) == 1 && len(ins) > 1 && left[0].Kind == toolsearch.Code && !slices.ContainsFunc(ins, (*input).isPath) {
			whole := left[0].Literal
			left = nil
			for name := range strings.SplitSeq(whole.Text, "/") {
				left = append(left, &value{Literal: toolsearch.Literal{Kind: whole.Kind, Text: name}})
			}
		}
		for i, in := range ins {
			if len(ins) != len(left) {
				break
			}
			if as := left[i].as(in); as != nil {
				args[in.Path] = as
			}
		}
	}
	searches := func(in *input) bool {
		return in.Required && args[in.Path] == nil && in.takes(toolsearch.Quoted) && slices.ContainsFunc(in.words, func(w string) bool { return slices.Contains(queries, w) })
	}
	if i := slices.IndexFunc(open, searches); i >= 0 {
		if m := topic.FindStringSubmatch(v.intent[part.from:part.to]); m != nil {
			args[open[i].Path] = strings.TrimSpace(m[1])
		}
	}
}

// queries are words in the names of inputs that take what to search for, and topic matches it.
var (
	queries = []string{"query", "q", "search", "keyword", "keywords", "term"}
	topic   = regexp.MustCompile(`(?:^.*\babout|\bfor) ([^,;.?!]+)`)
)

// quotedOption matches an option or an example in a description, or options in parentheses.
var quotedOption = regexp.MustCompile("\\B['\"`]([^'\"`]{2,40})['\"`]\\B|\\((\\w+(?:, \\w+){2,})\\)")

// flagWords are words of the names of flags that say nothing about what they set.
var flagWords = []string{"is", "has", "include", "show", "enable", "use", "want", "with", "get", "the", "a", "of", "for", "to", "in"}

// negations before a word turn a flag off.
var negations = []string{"no", "not", "without", "don", "never", "disable", "false", "exclude", "excluding", "non"}

// option returns the only one of the options of an input that a part of the intent mentions:
// one of its enumeration, a text in quotes in its description, or the value of a flag. The words of
// the tool's name are no options: "merge pull request 17" does not say how.
func (v *values) option(p *catalog.Parameter, enum []any, part span, tool []string) any {
	var said []string // the words of the part
	for _, w := range v.words {
		if part.from <= w.from && w.to <= part.to {
			said = append(said, strings.ToLower(v.intent[w.from:w.to]))
		}
	}
	if slices.Equal(p.Types, []string{"boolean"}) {
		name := slices.DeleteFunc(toolsearch.Words(p.Name), func(w string) bool { return slices.Contains(flagWords, w) })
		i := find(said, name)
		if i < 0 {
			return nil
		}
		return !slices.ContainsFunc(said[max(0, i-4):i], func(w string) bool { return slices.Contains(negations, w) })
	}
	if len(enum) == 0 && (len(p.Types) == 0 || slices.Contains(p.Types, "string")) {
		for _, m := range quotedOption.FindAllStringSubmatch(p.Description, -1) {
			for _, o := range append(strings.Split(m[2], ", "), m[1]) {
				if !query.IsStopWord(strings.ToLower(o)) && !slices.Contains(enum, any(o)) {
					enum = append(enum, o)
				}
			}
		}
	}
	options := slices.DeleteFunc(slices.Clone(enum), func(e any) bool {
		text, ok := e.(string)
		return !ok || len(text) < 2 || text == "all" || find(said, toolsearch.Words(text)) < 0 || find(tool, toolsearch.Words(text)) >= 0
	})
	if len(options) != 1 {
		return nil
	}
	return options[0]
}

// find returns the position of words in a text, -1 if it lacks them.
func find(text, words []string) int {
	for i := 0; i+len(words) <= len(text) && len(words) > 0; i++ {
		if slices.EqualFunc(text[i:i+len(words)], words, func(a, b string) bool { return toolsearch.Singular(a) == toolsearch.Singular(b) }) {
			return i
		}
	}
	return -1
}

// takes reports whether an input takes values of a kind by its types.
func (in *input) takes(k toolsearch.Kind) bool {
	has := func(t string) bool { return slices.Contains(in.Types, t) }
	switch k {
	case toolsearch.Number:
		return has("integer") || has("number")
	case toolsearch.List:
		return has("array")
	}
	return len(in.Types) == 0 || has("string")
}

// listedFormat matches descriptions of a text with a comma, such as "City, State".
var listedFormat = regexp.MustCompile(`['"(]\s*\p{Lu}[\pL ]+, \p{Lu}|City, State|city and state`)

// numbered reports whether the name of a text says that it can be a number.
func (in *input) numbered() bool {
	return len(in.words) == 0 || slices.Contains([]string{"id", "ids", "number", "code", "no", "zip"}, in.words[len(in.words)-1])
}

// isPath reports whether the name of an input says that it takes a path.
func (in *input) isPath() bool {
	return slices.ContainsFunc(in.words, func(w string) bool { return slices.Contains(hints[toolsearch.FilePath], w) })
}

// dated reports whether an input takes a date.
func (in *input) dated() bool {
	return slices.Contains(in.words, "date") || strings.Contains(in.Description, "YYYY")
}

// as returns a value in a type that an input takes, nil if it has none.
func (l *value) as(in *input) any {
	has := func(t string) bool { return len(in.Types) == 0 || slices.Contains(in.Types, t) }
	if l.items != nil || l.Kind == toolsearch.List {
		return l.array(in)
	}
	if l.Kind == toolsearch.Number {
		text := strings.ReplaceAll(l.Text, ",", "")
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && (has("integer") || has("number")) {
			return n
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil && has("number") {
			return f
		}
	}
	if !has("string") || l.Kind == toolsearch.Number && (len(l.Text) < longNumber || strings.ContainsAny(l.Text, ".,-")) && !in.numbered() || strings.Contains(l.Text, " ") && in.words != nil && in.words[len(in.words)-1] == "id" {
		return nil
	}
	switch l.Kind {
	case toolsearch.Date, toolsearch.Code, toolsearch.Phrase, toolsearch.Quoted:
		if in.dated() != (l.Kind == toolsearch.Date) && (l.Kind != toolsearch.Quoted || !toolsearch.Date.Is(l.Text)) {
			return nil
		}
		if !strings.Contains(l.Text, ",") && (l.Kind == toolsearch.Phrase || l.Kind == toolsearch.Quoted) && listedFormat.MatchString(in.Description) {
			return nil
		}
	}
	return l.Text
}

// array returns a list as the value of an array, nil if an element does not fit.
func (l *value) array(in *input) any {
	if !slices.Contains(in.Types, "array") {
		return nil
	}
	var list []any
	if l.Kind == toolsearch.List {
		if len(l.items) > 0 || json.Unmarshal([]byte(strings.ReplaceAll(l.Text, "'", `"`)), &list) != nil {
			return nil
		}
		return list
	}
	element := *in
	element.Parameter = &catalog.Parameter{Description: in.Description, Types: []string{in.element}}
	for _, item := range l.items {
		texts := []string{item.Text}
		if pieces := strings.Split(item.Text, ", "); item.Kind == toolsearch.Phrase && strings.ToUpper(pieces[len(pieces)-1]) != pieces[len(pieces)-1] {
			texts = pieces // "Chile, Peru and Bolivia", but not "Boston, MA"
		}
		for _, text := range texts {
			item.Text = text
			v := (&value{Literal: item}).as(&element)
			if v == nil {
				return nil
			}
			list = append(list, v)
		}
	}
	return list
}

// places are words in the names of inputs that take a place.
var places = []string{"location", "city", "place", "country", "state", "region", "area", "destination", "address", "loc"}

// around returns up to four words before a value, the nearest first, and three after it.
func (v *values) around(l *value) (before, after []token) {
	end := 0
	for end < len(v.words) && v.words[end].to <= l.Start {
		end++
	}
	next := end
	for next < len(v.words) && v.words[next].from < l.end {
		next++
	}
	before = slices.Clone(v.words[max(0, end-4):end])
	slices.Reverse(before)
	return before, v.words[next:min(len(v.words), next+3)]
}

// grade grades the evidence of an input's name: that it suggests the kind of a value, or has a
// word near it. One value is a list only by its kind.
func (v *values) grade(l *value, in *input) (grade float64) {
	kind := l.Kind
	if kind == toolsearch.Quoted {
		for k := range hints {
			if k != kind && k.Is(l.Text) {
				kind = k
			}
		}
	}
	named := func(list []string) bool {
		return slices.ContainsFunc(in.words, func(w string) bool { return slices.Contains(list, w) })
	}
	if named(hints[kind]) {
		if grade = byHint; kind == toolsearch.Quoted {
			grade = byText
		}
	}
	if len(l.items) == 1 {
		return grade
	}
	tells := func(w string) bool {
		return slices.ContainsFunc(in.telling, func(n string) bool { return w == n || len(n) > 2 && strings.HasPrefix(w, n) })
	}
	head := strings.ToLower(l.Text[:strings.IndexFunc(l.Text+"-", func(r rune) bool { return !unicode.IsLetter(r) })])
	if l.Kind == toolsearch.Code && len(head) > 2 && slices.ContainsFunc(in.telling, func(n string) bool { return strings.HasPrefix(n, head) }) {
		return 1 // "proj-3" for projectId
	}
	before, after := v.around(l)
	for i, w := range before {
		if tells(w.text) || i == 0 && w.text != "to" && slices.Contains(in.words, w.text) {
			grade = max(grade, 1-faded*float64(i))
		}
	}
	for i, w := range after {
		if l.Kind != toolsearch.Phrase && tells(w.text) {
			grade = max(grade, .95-faded*float64(i))
		}
	}
	if len(before) == 0 || l.Kind == toolsearch.Number || l.items != nil {
		return grade
	}
	switch last := before[0].text; last {
	case "from", "to":
		if slices.Contains(in.words, last) {
			return 1
		}
	case "in", "at", "near":
		if named(places) {
			return max(grade, .8)
		}
	}
	return grade
}

// described grades the evidence of an input's description: that it has a word next to the value.
func (v *values) described(l *value, in *input) (grade float64) {
	if l.Kind == toolsearch.Phrase || l.Kind == toolsearch.Code && !clearMark.MatchString(l.Text) || len(l.items) == 1 {
		return 0
	}
	words := wordSet(in.Description)
	says := func(w token) bool { return len(w.text) > 2 && words[w.text] && !query.IsStopWord(w.text) }
	before, after := v.around(l)
	for i, w := range before[:min(2, len(before))] {
		if says(w) {
			grade = max(grade, byWord-.1*float64(i))
		}
	}
	if len(after) > 0 && says(after[0]) {
		grade = max(grade, byWord-.05)
	}
	return grade
}
