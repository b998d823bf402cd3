package drift

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"cairn/internal/text/markdown"
	"cairn/internal/text/outline"
)

// claim is a name, and perhaps a value for it, that a document states.
type claim struct {
	doc    string
	line   int
	anchor string
	kind   Kind
	text   string // as the document has it
	full   string // the line, at most maxAround bytes before and after

	// keys are the tokens of which one must be in the folder: see tokens.
	keys []string
	// path is a path that must exist; "" for none.
	path string
	// sample is set for a name of a sample of code: it is one of the folder's only if a
	// symbol of the folder had it.
	sample bool
	owned  bool // a sample of the document declares the name, too
	// past is set for a claim next to words such as "removed": it counts only if its line was
	// there while the claim was true.
	past bool

	// value is what the document states for one of words: a value, the name of a parameter, or
	// the anchor of a link.
	value string
	words []string
	fix   string // of a broken link

	found    bool
	count    int // the commas between the parameters of the function, -1 if the folder has no such function
	seen     string
	evidence *evidence
}

var (
	// records matches the names of documents, and of folders, about the past or about others.
	records = regexp.MustCompile(`(?i)(^|/)(changelog|changes|history|release[-_ ]?notes?|releases?|news|newsfragments|whats[-_]?new|migrat\w*|upgrad\w*|authors|contributors|licen[cs]es?|copying|notices?|` +
		`archived?|blog|posts?|adrs?|rfcs?|proposals?|decisions|versioned_docs|testdata|fixtures?|tests?|__tests__|__snapshots__|third_party|vendor|node_modules|deprecat\w*|roadmap|todo|` +
		`\d{4}[-_]\d\d[-_]\d\d[^/]*|v?\d+(\.[\dx]+)+[^/]*|breaking[-_]changes|compat\w*|comparisons?|differences)(/|[-_.]|$)`)
	// bygone matches the words of a sentence or a heading about what was.
	bygone = regexp.MustCompile(`(?i)\b(remov\w+|renam\w+|deprecat\w+|no longer|former\w*|previous\w*|earlier|used to (be|have|call)|replac\w+|instead of|rather than|legacy|obsolete|dropped|drops|prior to|` +
		`migrat\w+|upgrad\w+|in favou?r of|supersed\w+|before v?\d|until v?\d|since v?\d|breaking|changelog|release notes|what'?s new|changed in|added in|old(er)?|historical\w*|unreleased|not (yet )?(exist|implemented|supported))\b`)
	// recorded matches the headings of sections about the past.
	recorded = regexp.MustCompile(`(?i)^\[?v?\d+\.\d+|\b(changelog|release notes|what'?s new|history|migrat\w+|upgrad\w+|unreleased|breaking)\b`)
	// word matches the pieces of a code span or of a line of code that can be names.
	word = regexp.MustCompile(`--?[A-Za-z][\w-]*|[A-Za-z_$@][\w$]*(?:(?:\.|::|#|->|-|/)[\w$]+)*(?:\(\)?|!)?`)
	// plain matches the names and paths that prose can have outside of code spans.
	plain = regexp.MustCompile(`\B--[a-z][\w-]+|[\w@.-]+(?:/[\w@.-]+)+\.[a-z]\w{0,9}\b|\b[A-Za-z]\w*`)
	// directive matches a directive of reStructuredText and its argument.
	directive = regexp.MustCompile(`(?m)^\s*\.\. [a-z:-]+:: +(\S+)$`)
	envName   = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$`)
	aPath     = regexp.MustCompile(`^(\.{0,2}/)?[\w@.-]+(/[\w@.-]+)*/?$`)
	ext       = regexp.MustCompile(`\.[a-z][a-z0-9]{0,9}$`)
	hump      = regexp.MustCompile(`[a-z]\p{Lu}`)
	version   = regexp.MustCompile(`^v?\d+(\.\d+)*$`)
)

// claims returns what a document states about the folder. programs are the names of programs
// that the folder can contain.
func claims(doc string, src []byte, programs map[string]bool) []*claim {
	d := markdown.Parse(doc, src)
	var about []byte // the first lines below the title
	if len(d.Sections) > 0 {
		s := d.Sections[0]
		_, text, _ := bytes.Cut(src[s.Start:s.OwnEnd], []byte("\n"))
		first, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n\n"))
		about = first[:min(len(first), 300)]
	}
	if recorded.Match(about) {
		return nil
	}
	c := &collector{doc: doc, d: d, src: src, programs: programs, seen: map[string]bool{}, owned: map[string]bool{}, bygone: bygone.Match(about)}
	fences := markdown.Fences(src)
	for _, f := range fences {
		for _, m := range own.FindAllSubmatch(src[f.Code:f.End], 200) {
			c.owned[string(m[1])+string(m[2])] = true
		}
	}
	at := 0
	for _, f := range fences {
		c.prose(at, f.Start)
		c.fence(f)
		at = f.End
	}
	c.prose(at, len(src))
	return c.claims
}

// The bounds of what is read of a document, so that the cost is proportional to its size.
const (
	maxClaims = 20_000
	maxAround = 1024 // bytes of a line before and after a claim
)

type collector struct {
	doc      string
	d        *markdown.Document
	src      []byte
	programs map[string]bool
	seen     map[string]bool
	owned    map[string]bool // the names that the samples of the document declare
	claims   []*claim
	bygone   bool // of the document
	past     bool // of the unit

	output    bool // of a command in a sample
	others    bool // the command is of another project
	continued bool // on the next line

	at, breaks int // an offset, and the line breaks before it
}

// line returns the number of the line at an offset, from 1. It counts from the last offset.
func (c *collector) line(at int) int {
	if at >= c.at {
		c.breaks += bytes.Count(c.src[c.at:at], []byte("\n"))
	} else {
		c.breaks -= bytes.Count(c.src[at:c.at], []byte("\n"))
	}
	c.at = at
	return 1 + c.breaks
}

// before returns the text before an offset on its line, the last maxAround bytes at most.
func (c *collector) before(at int) []byte {
	text := c.src[max(0, at-maxAround):at]
	return text[bytes.LastIndexByte(text, '\n')+1:]
}

// current returns the section at an offset; ok is false if it is a record of the past.
func (c *collector) current(at int) (s *markdown.Section, ok bool) {
	i := c.d.At(at)
	c.past = c.bygone
	if i < 0 { // before the first heading
		return &markdown.Section{}, true
	}
	s = &c.d.Sections[i]
	for _, h := range s.Trail {
		if recorded.MatchString(h) {
			return s, false
		}
		c.past = c.past || bygone.MatchString(h)
	}
	return s, true
}

// prose collects the claims of code spans in src[from:to].
func (c *collector) prose(from, to int) {
	for from < to {
		end := from + paragraphEnd(c.src[from:to])
		c.paragraph(from, end)
		from = end
	}
}

// paragraphEnd returns the offset after the first blank line, or before the next item of a
// list or row of a table.
func paragraphEnd(text []byte) int {
	at := 0
	for at < len(text) {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			return len(text)
		}
		at += n + 1
		next := bytes.TrimLeft(text[at:], " \t>")
		if len(next) == 0 || next[0] == '\n' || next[0] == '|' || next[0] == '#' || bytes.HasPrefix(next, []byte("- ")) || bytes.HasPrefix(next, []byte("* ")) {
			break
		}
	}
	return max(at, 1)
}

func (c *collector) paragraph(from, to int) {
	text := c.src[from:to]
	s, ok := c.current(from)
	if !ok {
		return
	}
	c.past = c.past || bygone.Match(text)
	c.values(string(text), from, s, prosaic)
	heading := text[0] == '#'
	for _, at := range plain.FindAllIndex(text, 50) {
		w := string(text[at[0]:at[1]])
		ok := distinctive(w) && (heading || strings.ContainsAny(w[1:], "_-"))
		if strings.Contains(w, "/") { // neither in an address nor a link
			ok = !bytes.HasSuffix(text[:at[0]], []byte("/")) && !bytes.HasSuffix(text[:at[0]], []byte("]("))
		}
		if ok {
			c.name(w, from+at[0], s, false)
		}
	}
	for _, at := range directive.FindAllSubmatchIndex(text, 50) {
		c.span(string(text[at[2]:at[3]]), from+at[2], s)
	}
	for i := 0; i < len(text); {
		n := bytes.IndexByte(text[i:], '`')
		if n < 0 {
			return
		}
		open := i + n
		run := len(text) - open - len(bytes.TrimLeft(text[open:], "`"))
		mark := text[open : open+run]
		n = bytes.Index(text[open+run:], mark)
		if n < 0 {
			return
		}
		span := strings.TrimSpace(string(text[open+run : open+run+n]))
		i = open + run + n + run
		c.span(span, from+open, s)
	}
}

// span collects the claims of a code span.
func (c *collector) span(span string, at int, s *markdown.Section) {
	if strings.HasPrefix(span, "--") { // a flag, and what its value is
		span, _, _ = strings.Cut(span, " <")
	}
	if len(span) > 200 || strings.ContainsAny(span, "<>{}…*?\\") && !strings.Contains(span, "::") || strings.Contains(span, "://") || strings.Contains(span, "...") {
		return
	}
	fields := strings.Fields(span)
	if aPath.MatchString(span) && c.isPath(span) {
		c.add(&claim{kind: Path, text: span, path: c.clean(span)}, at, s)
		return
	}
	c.command(fields, at, s)
	c.parameters(span, at, s, false)
	if setting.MatchString(span) {
		c.values(span, at, s, "")
	}
	for _, w := range word.FindAllString(span, 20) {
		c.name(w, at, s, len(fields) > 1)
	}
}

// isPath reports whether the form of a code span is that of a path rather than of a name.
func (c *collector) isPath(span string) bool {
	e := ext.FindString(span)
	known := outline.IsSource(span) || slices.Contains(markdown.Extensions(), e) || extensions[e]
	if !strings.Contains(span, "/") {
		return known && strings.IndexByte(span, '.') > 0
	}
	top, _, _ := strings.Cut(strings.TrimLeft(span, "./"), "/")
	return known || strings.HasSuffix(span, "/") || e == "" && (c.programs[top] || strings.Count(strings.Trim(span, "/"), "/") > 1)
}

var extensions = map[string]bool{".json": true, ".yaml": true, ".yml": true, ".toml": true, ".ini": true, ".cfg": true, ".conf": true, ".lock": true, ".env": true,
	".html": true, ".css": true, ".proto": true, ".xml": true, ".mod": true, ".sum": true, ".tmpl": true, ".tpl": true, ".svg": true, ".png": true, ".bat": true, ".mk": true, ".service": true}

// clean returns the path that a span means, relative to the root or to any folder.
func (c *collector) clean(span string) string {
	if strings.HasPrefix(span, "../") || strings.HasPrefix(span, "./") {
		if p := path.Join(path.Dir(c.doc), span); !strings.HasPrefix(p, "..") {
			return p
		}
	}
	return strings.TrimPrefix(path.Clean("/"+span), "/")
}

// command collects the claim that a program of the folder has a subcommand.
func (c *collector) command(fields []string, at int, s *markdown.Section) {
	if len(fields) > 1 && fields[0] == "$" {
		fields = fields[1:]
	}
	if len(fields) < 2 || !c.programs[fields[0]] || !isWord(fields[1]) || len(fields[1]) < 3 {
		return
	}
	sub := fields[1]
	c.add(&claim{kind: Command, text: fields[0] + " " + sub, keys: []string{`"` + sub, camel(sub, true), sub + ":"}}, at, s)
}

func isWord(w string) bool {
	return strings.IndexFunc(w, func(r rune) bool { return (r < 'a' || r > 'z') && r != '-' && r != '_' && (r < '0' || r > '9') }) < 0 && w[0] >= 'a'
}

// name collects the claim that a name exists, if its form is that of a name of the folder.
func (c *collector) name(w string, at int, s *markdown.Section, code bool) {
	call := strings.HasSuffix(w, "(") || strings.HasSuffix(w, ")")
	w = strings.TrimRight(w, "()!")
	if long, ok := strings.CutPrefix(w, "--"); ok && len(long) > 1 {
		keys := []string{w, `"` + long, long + ":"}
		if rest, ok := strings.CutPrefix(long, "no-"); ok {
			keys = append(keys, "--"+rest, `"`+rest, rest+":")
		}
		if strings.ContainsAny(long, "-_") {
			keys = append(keys, forms(long)...)
		}
		c.add(&claim{kind: Flag, text: w, keys: keys}, at, s)
		return
	}
	if strings.HasPrefix(w, "-") {
		return
	}
	if envName.MatchString(w) && !code {
		c.add(&claim{kind: Environment, text: w, keys: []string{w}}, at, s)
		return
	}
	if strings.Contains(w, "/") {
		if !code && aPath.MatchString(w) && c.isPath(w) {
			c.add(&claim{kind: Path, text: w, path: c.clean(w)}, at, s)
		}
		return
	}
	parts := strings.FieldsFunc(w, func(r rune) bool { return strings.ContainsRune(".:#>", r) })
	qualified := len(parts) > 1
	for i, p := range parts {
		p = strings.TrimRight(strings.TrimLeft(p, "$@"), "-")
		last := i == len(parts)-1
		switch {
		case len(p) < 3 || strings.HasSuffix(p, "_") || version.MatchString(p):
		case distinctive(p):
			keys := []string{`"` + p, p}
			if strings.Contains(p, "-") {
				keys = append(keys, forms(p)...)
			}
			c.add(&claim{kind: Symbol, text: p, keys: keys, sample: code}, at, s)
		case last && call:
			c.add(&claim{kind: Symbol, text: p + "()", keys: []string{`"` + p, p}, sample: code}, at, s)
		case last && qualified && !ext.MatchString(w) || !qualified && !code && unicode.IsUpper(rune(p[0])) && strings.ContainsFunc(p, unicode.IsLower):
			c.add(&claim{kind: Symbol, text: w, keys: []string{p, `"` + p, p + ":"}, sample: code}, at, s)
		case !qualified && !code && isWord(p) && len(p) > 3 && c.leads(at):
			c.add(&claim{kind: Key, text: p, keys: []string{`"` + p, p + ":", "--" + p}}, at, s)
		}
	}
}

// leads reports whether only markup is before an offset on its line, as in the first cell of
// a table or in an item of a list of names.
func (c *collector) leads(at int) bool {
	return len(bytes.TrimLeft(c.before(at), " \t|*-+#>[0123456789.")) == 0
}

// distinctive reports whether a word has the form of a name: several words in one.
func distinctive(w string) bool {
	inner := strings.Trim(w, "_-")
	if i := strings.LastIndexAny(inner, "_-"); i >= 0 {
		return len(inner) > 4 && strings.Trim(inner[i+1:], "0123456789") != ""
	}
	return hump.MatchString(inner)
}

// forms returns a name of several words in the spellings of identifiers.
func forms(w string) []string {
	snake := strings.ReplaceAll(w, "-", "_")
	return []string{w, snake, strings.ToUpper(snake), camel(w, true), camel(w, false)}
}

func camel(w string, upper bool) string {
	var b strings.Builder
	for _, r := range w {
		if r == '-' || r == '_' {
			upper = true
			continue
		}
		if upper {
			r = unicode.ToUpper(r)
		}
		upper = false
		b.WriteRune(r)
	}
	return b.String()
}

// maxLine bounds the lines of samples that are read.
const maxLine = 400

var (
	shell    = map[string]bool{"": true, "sh": true, "bash": true, "shell": true, "console": true, "zsh": true, "terminal": true, "text": true, "shell-session": true, "powershell": true, "cmd": true}
	settings = map[string]bool{"json": true, "jsonc": true, "json5": true, "yaml": true, "yml": true, "toml": true, "ini": true}
	key      = regexp.MustCompile(`^\s*(?:- )?["']?([A-Za-z][\w-]*)["']?\s*[:=]`)
	prompt   = regexp.MustCompile(`(?m)^\s*[$>%#❯] \S`)
	assign   = regexp.MustCompile(`(?:^|[\s;"'])([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)=`)
	comment  = regexp.MustCompile(`^\s*(//|#[^\[!]|--|;|/?\*|<!--)`)
	// own matches the declarations in a sample, whose names are its own.
	own = regexp.MustCompile(`\b(?:func|fn|def|class|interface|struct|enum|trait|type|const|let|var|function|val|mod|for)\s+(?:mut\s+|\([^)]*\)\s*)?(\w+)|(?m:^(?:>>> )?\s*(\w+)\s*(?::=|=\s|,))`)
)

// fence collects the claims of a code block.
func (c *collector) fence(f markdown.Fence) {
	s, ok := c.current(f.Start)
	if !ok {
		return
	}
	info := strings.ToLower(strings.Trim(string(c.src[f.Start:f.Code]), " \t\r\n>`~{."))
	lang, _, _ := strings.Cut(info, " ")
	lang, _, _ = strings.Cut(lang, ",")
	lang = strings.Trim(lang, "{}.")
	past := c.past
	code := string(c.src[f.Code:f.End])
	if languages.MatchString(lang) && !parses(lang, []byte(code)) {
		first, _, _ := strings.Cut(strings.TrimSpace(code), "\n")
		c.add(&claim{kind: Sample, text: first[:min(len(first), 80)], value: lang, words: strings.Split(code, "\n"), keys: []string{""}}, f.Code, s)
	}
	c.output, c.others = false, false
	prompts := prompt.MatchString(code)
	at := f.Code
	for line := range strings.Lines(code) {
		if len(line) <= maxLine {
			c.past = past || bygone.MatchString(line)
			if begins := prompt.MatchString(line); !c.continued {
				c.output = prompts && !begins
				c.others = (begins || lang != "" && lang != "text" && !c.output) && !c.runs(line)
			}
			c.continued = strings.HasSuffix(line, "\\\n")
			c.sample(lang, line, at, s)
		}
		at += len(line)
	}
	c.output, c.others = false, false
}

// runs reports whether a command line names a program of the folder.
func (c *collector) runs(line string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n/|;&()$@=\"'`", r) }), func(w string) bool {
		return c.programs[w]
	})
}

// sample collects the claims of a line in a code block.
func (c *collector) sample(lang, line string, at int, s *markdown.Section) {
	for _, m := range assign.FindAllStringSubmatch(line, 10) {
		c.add(&claim{kind: Environment, text: m[1], keys: []string{m[1]}}, at, s)
	}
	if !comment.MatchString(line) && (settings[lang] || shell[lang]) {
		c.values(line, at, s, lang)
	}
	if settings[lang] {
		if m := key.FindStringSubmatch(line); m != nil && len(m[1]) > 2 {
			keys := []string{`"` + m[1], m[1] + ":"}
			if distinctive(m[1]) {
				keys = append(keys, forms(m[1])...)
			}
			c.add(&claim{kind: Key, text: m[1], keys: keys}, at, s)
		}
		return
	}
	if shell[lang] {
		line, _, _ = strings.Cut(line, " # ")
		c.command(strings.Fields(line), at, s)
	} else if comment.MatchString(line) {
		return
	} else {
		c.parameters(line, at, s, true)
	}
	for _, w := range word.FindAllString(line, 40) {
		if flag := strings.HasPrefix(w, "--"); flag || strings.Contains(w, "/") {
			if shell[lang] && !(flag && c.others) && (flag || !c.output) {
				c.name(w, at, s, false)
			}
		} else if lang == "" || !shell[lang] {
			c.name(w, at, s, true)
		}
	}
}

// add adds a claim at an offset, once for each text of a section.
func (c *collector) add(n *claim, at int, s *markdown.Section) {
	id := string(n.kind) + "\x00" + n.text + "\x00" + s.Anchor
	n.owned = n.sample && c.owned[strings.TrimSuffix(n.text, "()")]
	if c.seen[id] || n.path == "" && len(n.keys) == 0 || len(c.claims) == maxClaims || n.owned && !distinctive(n.text) {
		return
	}
	c.seen[id] = true
	n.doc, n.anchor, n.past = c.doc, s.Anchor, c.past
	n.line = c.line(at)
	line, _, _ := bytes.Cut(c.src[at-len(c.before(at)):min(len(c.src), at+maxAround)], []byte("\n"))
	n.full = strings.TrimSpace(string(line))
	c.claims = append(c.claims, n)
}
