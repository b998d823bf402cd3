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
	plainW  = regexp.MustCompile(`[A-Za-z][A-Za-z]{2,}`)
)

// prosaic stands for the language of a text that is no sample.
const prosaic = "prose"

// window is the number of lines before that of a value in which its name can be.
const window = 3

// stop matches the words that name nothing.
var stop = regexp.MustCompile("^(the|and|for|with|than|least|most|more|les|from|version|default|release|use|this|that|are|was|set|see|when|into|value|since|" +
	"example|will|can|has|have|which|only|per|all|not|you|your|none|null)$")

// values collects the claims of the values in a unit, which begins at an offset: a paragraph,
// a row of a table or a line of a sample in a language.
func (c *collector) values(unit string, at int, s *markdown.Section, lang string) {
	if len(unit) > 2*maxAround || strings.HasPrefix(unit, "#") || c.past && lang == prosaic {
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
		if stop.MatchString(v) || lang == prosaic && m[2] > 0 && unit[m[2]-1] == 'v' { // a release is a record
			continue
		}
		names := c.namesOf(unit[:m[2]], s)
		if len(names) > 3 { // the subject, and what is nearest
			names = append(names[:1], names[len(names)-2:]...)
		} else if len(names) < 2 {
			names = c.namesOf(unit, s)
			names = names[:min(len(names), 3)]
		}
		n := &claim{kind: Value, value: v, code: len(names), sample: lang != prosaic || strings.Contains(unit, "{"), lead: last(unit[:m[2]])}
		if w := product.FindStringSubmatch(unit[max(0, m[2]-30):m[2]]); w != nil {
			n.words, n.code = append(n.words, squeeze(w[1])), n.code+1
		}
		n.words = append(append(n.words, names...), around(unit, m[2], m[3])...)
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

// around returns the words of prose next to a value.
func around(unit string, from, to int) (words []string) {
	before := plainW.FindAllString(unit[max(0, from-60):from], -1)
	after := plainW.FindAllString(unit[to:min(len(unit), to+30)], 2)
	for _, w := range append(after, before[max(0, len(before)-3):]...) {
		if w = squeeze(w); !stop.MatchString(w) && len(w) > 3 && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

// squeeze returns a name without case, hyphens, underscores and the s of a plural.
func squeeze(w string) string {
	if w = joints.Replace(strings.ToLower(w)); len(w) > 4 {
		w = strings.TrimSuffix(w, "s")
	}
	return w
}

var joints = strings.NewReplacer("-", "", "_", "", ",", "")

// near reports whether the lines of a text that end at line i name what the value of a claim
// is for: with a name of code, or with two words of prose. In a document, the line itself
// must have it, and the word of the claim before the value, which is after head.
func (c *claim) near(lines [][]byte, i int, head string, doc bool) bool {
	if len(lines[i]) > maxLine || doc && (c.lead == "" || last(head) != c.lead) {
		return false
	}
	first, prose := max(0, i-window), 0
	if doc {
		first = i
	}
	for from := i; from >= first && len(lines[from]) <= maxLine; from-- {
		named := false
		eachWord(lines[from], func(w []byte) {
			n := slices.IndexFunc(c.words, func(s string) bool { return s == string(w) })
			if named = named || n >= 0 && n < c.code; n >= c.code && from == i {
				prose++
			}
		})
		if named {
			return true
		}
	}
	return prose > 1 || prose == 1 && c.code == 0 && (len(c.value) > 2 || len(c.words) == 1)
}

// eachWord calls fn with the names in a text, squeezed, and with the words that they consist
// of. fn does not keep the word.
func eachWord(text []byte, fn func(w []byte)) {
	var buf [256]byte
	whole, from := buf[:0], 0 // from is the start of the last word
	end := func(w []byte) {
		if len(w) > 4 {
			w = bytes.TrimSuffix(w, []byte("s"))
		}
		if len(w) > 1 {
			fn(w)
		}
	}
	for i := 0; i <= len(text); i++ {
		b, kind := byte(0), byte(0)
		if i < len(text) {
			b, kind = text[i], class[text[i]]
		}
		inside := kind == 1 && b != '_'
		upper := b >= 'A' && b <= 'Z'
		if len(whole) > from && (!inside || upper && text[i-1] >= 'a' && text[i-1] <= 'z') {
			end(whole[from:])
			if kind == 0 && from > 0 {
				end(whole)
			}
			from = len(whole)
		}
		switch {
		case inside && len(whole) < len(buf):
			if upper {
				b += 'a' - 'A'
			}
			whole = append(whole, b)
		case kind != 1 && kind != 2:
			whole, from = buf[:0], 0
		}
	}
}

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

// at calls fn with the claims of a value that are about a name in the lines around it. The
// value is at an offset of a text.
func (v named) at(text []byte, at int, token []byte, fn func(c *claim)) {
	if len(v) == 0 || len(token) == 0 || !isDigit(token[0]) && v[string(token)] == nil {
		return
	}
	claims := v[valueAt(text[at:])]
	if claims == nil {
		return
	}
	start := at
	for range window + 1 {
		start = max(0, bytes.LastIndexByte(text[:start], '\n'))
	}
	line, _, _ := bytes.Cut(text[at:min(len(text), at+maxLine)], []byte("\n"))
	eachWord(text[max(start, at-window*maxLine):at+len(line)], func(w []byte) {
		for _, c := range claims[string(w)] {
			if c.tried != &text[at] {
				c.tried = &text[at]
				fn(c)
			}
		}
	})
}

// last returns the last word of a text, squeezed.
func last(text string) string {
	all := plainW.FindAllString(text[max(0, len(text)-60):], -1)
	return squeeze(strings.Join(all[max(0, len(all)-1):], ""))
}

// holds reports whether the lines around the value of a claim at an offset of a text are about
// its name, and returns the line before the value.
func (c *claim) holds(text []byte, at int, doc bool) (head string, ok bool) {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := bytes.Cut(text[at:], []byte("\n"))
	lines := bytes.Split(text[max(0, start-window*maxLine):at+len(line)], []byte("\n"))
	head = strings.TrimLeft(string(text[start:at]), " \t")
	return head, c.near(lines, len(lines)-1, head, doc)
}

// valueAt returns the value at the start of a text, as in a claim.
func valueAt(text []byte) string {
	return thousands.Replace(string(placed.Find(text[:min(len(text), maxLine)])))
}

var thousands = strings.NewReplacer("_", "", ",", "")

var placed = regexp.MustCompile(`^\d+(,\d{3})+\b|^[\w.+/-]*\w`)

// other returns the value that the lines of a text have now in the place after head, "" if it still has
// that of the claim, or none of its form.
func (c *claim) other(head string, lines [][]byte, doc bool) (now string) {
	for i, line := range lines {
		rest, ok := bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte(head))
		if !ok || !c.near(lines, i, head, doc) {
			continue
		}
		w := valueAt(rest)
		switch {
		case strings.TrimSuffix(w, ".0") == strings.TrimSuffix(c.value, ".0") || slices.Contains(c.keys, w):
			return ""
		case w != "" && now == "" && isDigit(w[0]) == isDigit(c.value[0]):
			now = w
		}
	}
	return now
}

// parameters collects the claims that functions have the parameters that a call or a
// declaration in a document names. In a sample, which declares the functions of owned, only
// named arguments count.
func (c *collector) parameters(text string, at int, s *markdown.Section, owned map[string]bool) {
	for _, m := range call.FindAllStringSubmatch(text, 5) {
		if owned[m[1]] {
			continue
		}
		for _, arg := range strings.Split(m[2], ",") {
			if a := argued.FindStringSubmatch(arg); a != nil && len(a[1]) > 1 && (owned == nil || strings.ContainsAny(arg, "=:")) {
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

// broken collects the claim that a sample in a language parses, if it does not.
func (c *collector) broken(lang string, f markdown.Fence, s *markdown.Section) {
	if code := c.src[f.Code:f.End]; lang != "" && !shell[lang] && !parses(lang, code) {
		first, _, _ := strings.Cut(strings.TrimSpace(string(code)), "\n")
		c.add(&claim{kind: Sample, text: first[:min(len(first), 80)], value: lang, words: strings.Split(string(code), "\n"), keys: []string{""}}, f.Code, s)
	}
}

// parsed reports whether a document has the sample of a claim in a form that parses.
func (c *claim) parsed(doc []byte) bool {
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
	for _, pair := range []string{"()", "[]", "{}"} {
		if bytes.Count(code, []byte(pair[:1])) != bytes.Count(code, []byte(pair[1:])) {
			return false
		}
	}
	return true
}
