package drift

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"cairn/internal/text/markdown"
	"cairn/internal/text/outline"
)

// A document states a value next to a name: a default, a version, a port, a number. The
// value is drift if a line with both in code, or in another document, has another value in
// its place now.

var (
	// number matches a number or a version, and its unit.
	number = regexp.MustCompile(`(?:^|[\s("'` + "`" + `=:~|,≥>^\[-])v?(\d[\d_]*(?:,\d{3})*(?:\.\d+)*)(?: ?[A-Za-z%]{1,4}\b|\+)?`)
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

var stop = map[string]bool{"the": true, "and": true, "for": true, "with": true, "than": true, "least": true, "most": true, "more": true, "less": true, "from": true, "version": true, "default": true,
	"defaults": true, "release": true, "use": true, "this": true, "that": true, "are": true, "was": true, "set": true, "see": true, "when": true, "into": true, "value": true, "since": true, "example": true,
	"will": true, "can": true, "has": true, "have": true, "which": true, "only": true, "per": true, "all": true, "not": true, "you": true, "your": true, "true": true, "false": true, "none": true, "null": true}

// values collects the claims of the values in a unit, which begins at an offset: a paragraph,
// a row of a table or a line of a sample in a language.
func (c *collector) values(unit string, at int, s *markdown.Section, lang string) {
	if len(unit) > 2*maxAround || strings.HasPrefix(unit, "#") {
		return
	}
	unit = address.ReplaceAllStringFunc(unit, func(s string) string { return strings.Repeat(" ", len(s)) })
	found := number.FindAllStringSubmatchIndex(unit, 20)
	found = append(found, defaulted.FindAllStringSubmatchIndex(unit, 5)...)
	if m := setting.FindStringSubmatchIndex(strings.TrimRight(unit, "\r\n")); m != nil && (settings[lang] || shell[lang]) {
		found = append(found, []int{0, 0, m[4], m[5]})
	}
	var names []string
	if len(found) > 0 {
		names = c.namesOf(unit, s)
	}
	for _, m := range found {
		v := strings.Map(func(r rune) rune {
			if r == ',' || r == '_' {
				return -1
			}
			return r
		}, unit[m[2]:m[3]])
		if stop[v] && v != "true" && v != "false" {
			continue
		}
		n := &claim{kind: Value, value: v, code: len(names), sample: lang != prosaic, lead: last(unit[:m[2]])}
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
		if w = squeeze(parts[len(parts)-1]); len(w) > 2 && !stop[w] && !slices.Contains(names, w) && len(names) < 12 {
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
		if w = squeeze(w); !stop[w] && len(w) > 3 && !slices.Contains(words, w) {
			words = append(words, strings.TrimSuffix(w, "s"))
		}
	}
	return words
}

// squeeze returns a name without case, hyphens and underscores.
func squeeze(w string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(w))
}

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

// eachWord calls fn with the names in a text in lower case, without hyphens and underscores,
// and with the words that they consist of. fn does not keep the word.
func eachWord(text []byte, fn func(w []byte)) {
	var whole, part [128]byte
	n, m, parts := 0, 0, 0
	flush := func() {
		if m > 1 {
			fn(part[:m])
			if m > 4 && part[m-1] == 's' {
				fn(part[:m-1])
			}
		}
		m, parts = 0, parts+1
	}
	for i := 0; i <= len(text); i++ {
		kind := byte(0)
		if i < len(text) {
			kind = class[text[i]]
		}
		if kind != 1 || text[i] == '_' || i > 0 && text[i] >= 'A' && text[i] <= 'Z' && text[i-1] >= 'a' && text[i-1] <= 'z' {
			flush()
		}
		switch {
		case kind == 1 && text[i] != '_' && n < len(whole):
			b := text[i]
			if b >= 'A' && b <= 'Z' {
				b += 'a' - 'A'
			}
			whole[n], part[m] = b, b
			n, m = n+1, m+1
		case kind != 1 && kind != 2:
			if parts > 1 {
				fn(whole[:n])
			}
			n, m, parts = 0, 0, 0
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
	eachWord(text[max(start, at-window*maxLine):min(lineEnd(text, at), at+maxLine)], func(w []byte) {
		for _, c := range claims[string(w)] {
			fn(c)
		}
	})
}

// last returns the last word of a text, squeezed.
func last(text string) string {
	all := plainW.FindAllString(text[max(0, len(text)-60):], -1)
	return squeeze(strings.Join(all[max(0, len(all)-1):], ""))
}

// holds reports whether the line at an offset of a text states the value of a claim, and
// returns the line before the value.
func (c *claim) holds(text []byte, at int, doc bool) (head string, ok bool) {
	if !slices.Contains(c.keys, valueAt(text[at:])) {
		return "", false
	}
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	lines := bytes.Split(text[max(0, start-window*maxLine):lineEnd(text, at)], []byte("\n"))
	head = strings.TrimLeft(string(text[start:at]), " \t")
	return head, c.near(lines, len(lines)-1, head, doc)
}

func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

// valueAt returns the value at the start of a text, as in a claim.
func valueAt(text []byte) string {
	return strings.NewReplacer("_", "", ",", "").Replace(string(placed.Find(text[:min(len(text), maxLine)])))
}

var placed = regexp.MustCompile(`^\d+(,\d{3})+\b|^[\w.+/-]*\w`)

// other returns the value that a text has now in the place after head, "" if it still has
// that of the claim, or none of its form.
func (c *claim) other(head string, text []byte, doc bool) (now string) {
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		rest, ok := strings.CutPrefix(strings.TrimLeft(string(line), " \t"), head)
		if !ok || !c.near(lines, i, head, doc) {
			continue
		}
		w := valueAt([]byte(rest))
		digits := func(s string) bool { return s != "" && unicode.IsDigit(rune(s[0])) }
		switch {
		case strings.TrimSuffix(w, ".0") == strings.TrimSuffix(c.value, ".0") || slices.Contains(c.keys, w):
			return ""
		case w != "" && now == "" && digits(w) == digits(c.value):
			now = w
		}
	}
	return now
}

// parameters collects the claims that functions have the parameters that a call or a
// declaration in a document names.
func (c *collector) parameters(text string, at int, s *markdown.Section, code bool) {
	for _, m := range call.FindAllStringSubmatch(text, 5) {
		for _, arg := range strings.Split(m[2], ",") {
			if a := argued.FindStringSubmatch(arg); a != nil && len(a[1]) > 1 && (!code || strings.ContainsAny(arg, "=:")) {
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
		if s.Name == c.keys[0] {
			decl := text[s.Decl:min(s.End, s.Decl+4*maxLine)]
			if i := bytes.IndexByte(decl[max(0, bytes.Index(decl, []byte(s.Name))):], '('); i >= 0 {
				decl = decl[i:]
			}
			decl = decl[:closing(decl)]
			count = max(count, bytes.Count(decl, []byte(",")))
			tokens(decl, func(t []byte, _ int) { parameter = parameter || string(t) == c.value })
		}
	}
	return parameter, count
}

// closing returns the offset of the bracket that closes the first one of a text, or its end.
func closing(text []byte) int {
	depth := 0
	for i, b := range text {
		if bytes.IndexByte([]byte("([{"), b) >= 0 {
			depth++
		} else if bytes.IndexByte([]byte(")]}"), b) >= 0 {
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
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
