package drift

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"cairn/internal/text/markdown"
	"cairn/internal/text/outline"
)

// A document states a value next to a name: a default, a version, a port, a number. The
// value is drift if a line with both in code, or in another document, has another value in
// its place now.

var (
	// number matches a number or a version, and its unit.
	number = regexp.MustCompile(`(?:^|[\s("'` + "`" + `=:~|,≥>^*\[])v?(\d[\d_]*(?:,\d{3})*(?:\.\d+)*)(?: ?[A-Za-z%]{1,4}\b|\+)?`)
	// address matches what has numbers that are no values: the target of a link, the number of an item.
	address = regexp.MustCompile(`\]\([^)\s]*\)|https?://[^\s)>]*|(?m:^\s*\d+[.)]\s)|#\d+`)
	// defaulted matches a default that is a word.
	defaulted = regexp.MustCompile("(?i)\\bdefaults?(?: (?:is|to|value))*(?:[\\s:=|]|\\*\\*)*[`\"']*([A-Za-z][\\w./-]*)[`\"']")
	// setting matches the value of a setting in a sample or a code span.
	setting = regexp.MustCompile("^[\\s`-]*[\"']?([A-Za-z-][\\w.-]*)[\"']?\\s*[:=]\\s*[\"']?([\\w./+-]+)[\"'`,;]*\\s*$")
	// call matches a call or a declaration with its arguments.
	call   = regexp.MustCompile(`([A-Za-z_]\w{2,})\(([^()]*)\)`)
	argued = regexp.MustCompile(`^\s*[*&]{0,2}([A-Za-z_]\w*)\s*(?:[:=?]|$|\s[\w*\[\].]+$)`)
	// product matches the name of what has a version.
	product = regexp.MustCompile(`\b([A-Z][A-Za-z]+)[ :=≥>~^"'v]+$`)
	plainW  = regexp.MustCompile("[A-Za-z][A-Za-z'’_-]*")
	numeric = regexp.MustCompile(`^\d[\d.]*[A-Za-z%]{0,4}$`)
	ident   = regexp.MustCompile(`[A-Za-z_][\w-]*`)
)

// prosaic stands for the language of a text that is no sample.
const prosaic = "prose"

// window is the number of lines before and after a default in which its name can be.
const window = 3

// stop matches the words that name nothing.
var stop = regexp.MustCompile("^(the|and|for|with|than|least|most|more|les|from|version|default|release|use|this|that|are|was|set|see|when|into|value|since|" +
	"example|will|can|has|have|which|only|per|all|not|you|your|none|null)$")

// values collects the claims of the values in a unit, which begins at an offset: a paragraph,
// a row of a table or a line of a sample in a language.
func (c *collector) values(unit string, at int, s *markdown.Section, lang string) {
	if len(unit) > 2*maxAround || strings.HasPrefix(unit, "#") || strings.HasPrefix(unit, "..") || c.past && lang == prosaic {
		return
	}
	unit = address.ReplaceAllStringFunc(unit, func(s string) string { return strings.Repeat(" ", len(s)) })
	found := number.FindAllStringSubmatchIndex(unit, 20)
	found = append(found, defaulted.FindAllStringSubmatchIndex(unit, 5)...)
	if m := setting.FindStringSubmatchIndex(strings.TrimRight(unit, "\r\n")); m != nil && (settings[lang] || shell[lang]) {
		found = append(found, []int{0, 0, m[4], m[5]})
	}
	for _, m := range found {
		v := valueAt([]byte(unit[m[2]:m[3]]))
		if end := max(m[1], m[3]); end < len(unit) && class[unit[end]] == 1 || len(v) > 1 && v[0] == '0' && isDigit(v[1]) {
			continue // part of a word, such as a hash
		}
		if stop.MatchString(v) || lang != prosaic && len(v) < 3 || // a sample has any small number
			lang == prosaic && m[2] > 0 && unit[m[2]-1] == 'v' { // a release is a record
			continue
		}
		names := c.namesOf(unit[:m[2]], s)
		if len(names) > 3 { // the subject, and what is nearest
			names = append(names[:1], names[len(names)-2:]...)
		} else if len(names) < 2 {
			names = c.namesOf(unit, s)
			names = names[:min(len(names), 3)]
		}
		if w := product.FindStringSubmatch(unit[max(0, m[2]-30):m[2]]); w != nil && !stop.MatchString(squeeze(w[1])) {
			names = append(names, "-"+squeeze(w[1]))
		}
		n := &claim{kind: Value, value: v, words: append(names, lead(unit[:m[2]])...), sample: lang != prosaic || strings.Contains(unit, "{")}
		if len(n.words) > 0 {
			before := strings.Fields(unit[max(0, m[2]-maxLine):m[2]])
			n.text = strings.TrimLeft(strings.Join(before[max(0, len(before)-3):], " ")+" "+unit[m[2]:m[3]], "|*- ")
			n.keys = []string{v, "v" + v}
			if unit := strings.TrimSpace(unit[m[3]:max(m[1], m[3])]); unit != "" {
				n.keys = append(n.keys, v+unit)
			}
			c.add(n, at+m[2], s)
		}
	}
}

// namesOf returns the names in a unit that have the form of names, squeezed, and that of its
// section.
func (c *collector) namesOf(unit string, s *markdown.Section) (names []string) {
	add := func(w string) {
		parts := strings.FieldsFunc(strings.TrimRight(w, "()!"), func(r rune) bool { return strings.ContainsRune(".:#>/", r) })
		if len(parts) == 0 {
			return
		}
		if w = squeeze(parts[len(parts)-1]); len(w) > 2 && !stop.MatchString(w) && !slices.Contains(names, w) && len(names) < 12 {
			names = append(names, w)
		}
	}
	for i, span := range strings.Split(unit, "`") {
		for _, w := range word.FindAllString(span, 12) {
			if i%2 == 1 || distinctive(w) || strings.HasPrefix(w, "--") {
				add(w)
			}
		}
	}
	if m := setting.FindStringSubmatch(strings.TrimRight(unit, "\r\n")); m != nil {
		add(m[1])
	}
	if cells := strings.Split(unit, "|"); len(cells) > 2 && !strings.Contains(strings.TrimSpace(cells[1]), " ") {
		add(strings.Trim(cells[1], " *`"))
	}
	if h := strings.Trim(strings.Join(s.Trail[max(0, len(s.Trail)-1):], ""), "`* "); !strings.Contains(h, " ") {
		add(h)
	}
	return names
}

// squeeze returns a name without case, hyphens, underscores and the s of a plural.
func squeeze(w string) string {
	if w = joints.Replace(strings.ToLower(w)); len(w) > 4 {
		w = strings.TrimSuffix(w, "s")
	}
	return w
}

var joints = strings.NewReplacer("-", "", "_", "", ",", "")

// named collects the claims of a value with the claims of their words.
type named map[string]map[string][]*claim

func (v named) add(c *claim) {
	for _, k := range c.keys {
		if v[k] == nil {
			v[k] = map[string][]*claim{}
		}
		for _, w := range c.words {
			v[k][w] = append(v[k][w], c)
		}
	}
}

// at calls fn with the claims whose value is at an offset of a text, next to a name for it.
func (v named) at(text []byte, at int, token []byte, doc bool, fn func(c *claim)) {
	if len(v) == 0 || len(token) == 0 || !isDigit(token[0]) && v[string(token)] == nil {
		return
	}
	if claims := v[valueAt(text[at:])]; claims != nil {
		for _, k := range keysAt(text, at, doc) {
			for _, c := range claims[k] {
				fn(c)
			}
		}
	}
}

// holds reports whether the value at an offset of a text is that of one of the names of a claim.
func (c *claim) holds(text []byte, at int, doc bool) bool {
	return slices.ContainsFunc(keysAt(text, at, doc), func(k string) bool { return slices.Contains(c.words, k) })
}

// keysAt returns the names, squeezed, whose value is at an offset of a text: in code the
// names before it in its statement, and for a default those of the lines around it. In a
// document it is the phrase before the value. A hyphen is before the words of a name.
func keysAt(text []byte, at int, doc bool) (keys []string) {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	if at-start > maxLine {
		return nil
	}
	head := string(text[start:at])
	if doc {
		return lead(head)
	}
	names := ident.FindAllString(head[strings.LastIndexAny(head, ";{}")+1:], -1)
	names = names[max(0, len(names)-3):]
	if slices.ContainsFunc(names, func(n string) bool { return strings.Contains(strings.ToLower(n), "default") }) {
		from, to := start, at
		for range window {
			from = max(0, bytes.LastIndexByte(text[:max(from-1, 0)], '\n')+1)
			to += bytes.IndexByte(text[to:], '\n') + 1
		}
		if to-from < 4*maxLine {
			names = ident.FindAllString(string(text[from:to]), -1)
		}
	}
	for _, n := range names {
		keys = append(keys, squeeze(n), "-"+squeeze(n))
		for _, part := range strings.FieldsFunc(n, func(r rune) bool { return r == '-' || r == '_' }) {
			if len(part) < len(n) {
				keys = append(keys, "-"+squeeze(part))
			}
		}
	}
	return keys
}

// lead returns the last three words of a text, if it has as many.
func lead(text string) []string {
	all := plainW.FindAllString(text[max(0, len(text)-100):], -1)
	if len(all) < 3 {
		return nil
	}
	return []string{strings.ToLower(strings.Join(all[len(all)-3:], " "))}
}

// valueAt returns the value at the start of a text, as in a claim.
func valueAt(text []byte) string {
	return thousands.Replace(string(placed.Find(text[:min(len(text), maxLine)])))
}

var thousands = strings.NewReplacer("_", "", ",", "")

var placed = regexp.MustCompile(`^\d+(,\d{3})+\b|^[\w.+/-]*\w`)

// other returns the value that the text of a file has now in the place of that at an offset of
// the text before, "" if it still has that of the claim, or none of its form.
func (c *claim) other(before []byte, at int, text []byte, doc bool) (now string) {
	head := bytes.TrimLeft(before[bytes.LastIndexByte(before[:at], '\n')+1:at], " \t")
	for i := 0; ; {
		n := bytes.Index(text[i:], head)
		if n < 0 || len(head) == 0 {
			return now
		}
		i += n + len(head)
		if len(bytes.TrimLeft(text[bytes.LastIndexByte(text[:i-len(head)], '\n')+1:i-len(head)], " \t")) > 0 || !c.holds(text, i, doc) {
			continue
		}
		w := valueAt(text[i:])
		switch {
		case strings.TrimSuffix(w, ".0") == strings.TrimSuffix(c.value, ".0") || slices.Contains(c.keys, w):
			return ""
		case w != "" && now == "" && isDigit(c.value[0]) == numeric.MatchString(w):
			now = w
		}
	}
}

// parameters collects the claims that functions have the parameters that a call or a
// declaration in a document names. In a sample, only named arguments
// of functions that the document does not declare count.
func (c *collector) parameters(text string, at int, s *markdown.Section, sample bool) {
	for _, m := range call.FindAllStringSubmatch(text, 5) {
		if sample && c.owned[m[1]] {
			continue
		}
		for _, arg := range strings.Split(m[2], ",") {
			if a := argued.FindStringSubmatch(arg); a != nil && len(a[1]) > 1 && (!sample || strings.ContainsAny(arg, "=:")) {
				c.add(&claim{kind: Signature, text: m[1] + "(" + a[1] + ")", value: a[1], keys: []string{m[1]}, count: -1}, at, s)
			}
		}
	}
}

// takes reports whether the source code in a file declares the function of a claim with its
// parameter, and returns the number of all its parameters, -1 if it does not declare it.
func (c *claim) takes(file string, text []byte) (parameter bool, count int) {
	count = -1
	symbols, _ := outline.Outline(file, text)
	for _, s := range symbols {
		if s.Name != c.keys[0] {
			continue
		}
		if !strings.Contains(s.Signature, "(") {
			return true, max(count, 0) // what a call of it takes is elsewhere
		}
		_, list, _ := strings.Cut(s.Signature, s.Name)
		n := strings.Count(list, ",")
		if !strings.HasPrefix(strings.TrimSpace(list), "()") {
			n++
		}
		count = max(count, n)
		parameter = parameter || strings.HasSuffix(list, "…") // cut
		tokens([]byte(list), func(t []byte, _ int) { parameter = parameter || string(t) == c.value })
	}
	return parameter, count
}

// within reports whether a document has the section of a claim, or its sample in a form that parses.
func (c *claim) within(doc []byte) bool {
	if c.kind == Anchor {
		_, ok := markdown.Resolve(markdown.Parse(c.path, doc), c.value)
		return ok
	}
	for _, f := range markdown.Fences(doc) {
		code := doc[f.Code:f.End]
		if lines := strings.Split(string(code), "\n"); bytes.Contains(doc[f.Start:f.Code], []byte(c.value)) && len(lines) < 2*len(c.words) && parses(c.value, code) {
			same := 0
			for _, l := range c.words {
				if slices.Contains(lines, l) {
					same++
				}
			}
			if 2*same > len(c.words) {
				return true
			}
		}
	}
	return false
}

// parses reports whether the code of a sample can be complete.
func parses(lang string, code []byte) bool {
	if lang == "json" { // the last line closes the sample
		return json.Valid(code[:max(0, bytes.LastIndexByte(bytes.TrimRight(code, "\n"), '\n'))])
	}
	code = literal.ReplaceAll(code, nil)
	for _, pair := range []string{"()", "[]", "{}"} {
		if bytes.Count(code, []byte(pair[:1])) != bytes.Count(code, []byte(pair[1:])) {
			return false
		}
	}
	return true
}

// literal matches the strings and comments of code.
var literal = regexp.MustCompile("\"(?:\\\\.|[^\"\\\\\n])*\"|'(?:\\\\.|[^'\\\\\n])*'|`[^`]*`|(?://|# )[^\n]*|(?s:/\\*.*?\\*/)")

// languages are those whose samples are to be complete.
var languages = regexp.MustCompile(`^(json|js|jsx|ts|tsx|javascript|typescript|go|golang|py|python|rust|rs|java|ruby|rb|kotlin|c|cpp|csharp|php)$`)
