package outline

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// python finds functions and classes by the indentation of logical lines.
var python = &language{read: readPython,
	lexis: &lexis{comments: []string{"#"}, quotes: `"'`, triple: true, newlines: true}}

func readPython(o *outline) {
	o.lex()
	tokens := o.tokens
	r := indented{outline: o}
	depth, first, above := 0, -1, -1 // first tokens of the line and of the decorators above it
	logical := func(first, to int) {
		start := int(tokens[first].start)
		indent := start - o.lineStart(start)
		r.close(indent, r.last)
		r.last = int(tokens[to-1].end)
		if o.is(first, '@') {
			if above < 0 {
				above = first
			}
			return
		}
		at := start
		if above >= 0 {
			at = int(tokens[above].start)
		}
		above = -1
		k := first
		if o.text(k) == "async" {
			k++
		}
		kind := o.text(k)
		if kind != "def" && kind != "class" || k+1 >= to || !o.isWord(k+1) {
			return
		}
		isType := kind == "class" && (len(r.stack) == 0 || r.stack[len(r.stack)-1].isType)
		r.open(Symbol{Name: o.text(k + 1), Kind: kind, Start: at, Decl: start, End: r.last,
			Signature: signature(o.src[start:tokens[o.outside(first, to, ':')-1].end])}, indent, isType, false)
	}
	for i, t := range tokens {
		switch {
		case o.opens(i):
			depth++
		case o.closes(i):
			depth = max(depth-1, 0)
		}
		if t.kind == newline {
			if depth > 0 || o.is(i-1, '\\') {
				continue
			}
			if first >= 0 {
				logical(first, i)
			}
			first = -1
			continue
		}
		if first < 0 {
			first = i
		}
	}
	if first >= 0 {
		logical(first, len(tokens))
	}
	r.close(0, r.last)
}

// outside returns the first of the tokens [from, to) that is c and not in brackets, to if
// there is none.
func (o *outline) outside(from, to int, c byte) int {
	depth := 0
	for i := from; i < to; i++ {
		switch {
		case depth == 0 && o.is(i, c):
			return i
		case o.opens(i):
			depth++
		case o.closes(i):
			depth--
		}
	}
	return to
}

// lined describes a language whose definitions begin a line and end with a line of the
// same indentation.
type lined struct {
	// begin matches a definition. Its groups are the kind, the scope and the name, once for
	// each alternative.
	begin func() *regexp.Regexp
	end   []string // one of these begins the last line of a definition
	// remark matches, without its indentation, a line that belongs to the definition below it:
	// a comment or an annotation.
	remark func() *regexp.Regexp
	// block are the markers of comments that span lines.
	block [2]string
	here  func() *regexp.Regexp // matches the start of a heredoc; the first group is its label
	types []string              // kinds whose members are not local
	short func() *regexp.Regexp // matches a definition that ends with the line
	stop  string                // the line that ends the code
}

// maxLine is the maximum length in bytes of a line that begins a definition.
const maxLine = 2000

// readLined returns a reader for a language, which reads line by line.
func readLined(l lined) func(o *outline) {
	return func(o *outline) {
		r := linedReader{indented: indented{outline: o}, lined: l}
		for at := 0; at < len(o.src); {
			end := LineEnd(o.src, at)
			if r.line(at, end) {
				break
			}
			at = max(end+1, r.skip)
		}
		r.close(0, r.last)
	}
}

type linedReader struct {
	indented
	lined
	skip  int  // the end of a heredoc
	quiet bool // in a comment that spans lines
}

// indented reads a language whose definitions end by their indentation.
type indented struct {
	*outline
	stack []openDef
	last  int // the end of the last line with code
}

type openDef struct {
	symbol, indent int
	isType         bool // what it contains is not local
}

// open adds the symbol of a definition, which goes on unless it is ended.
func (r *indented) open(s Symbol, indent int, isType, ended bool) {
	s.Parent = -1
	for _, up := range slices.Backward(r.stack) {
		if up.symbol >= 0 {
			s.Parent, s.Local = up.symbol, !up.isType
			break
		}
	}
	if symbol := r.add(s); !ended && len(r.stack) < maxDepth {
		r.stack = append(r.stack, openDef{symbol, indent, isType})
	}
}

// line reads one line and reports whether the code ends there.
func (r *linedReader) line(at, end int) bool {
	line := r.src[at:end]
	text := bytes.TrimLeft(line, " \t")
	indent := len(line) - len(text)
	r.skip = 0
	opens := !r.quiet && r.block[0] != "" && bytes.HasPrefix(text, []byte(r.block[0]))
	switch {
	case r.quiet || opens:
		if opens {
			text = text[len(r.block[0]):]
		}
		r.quiet = !bytes.Contains(text, []byte(r.block[1]))
		r.comments = append(r.comments, span{at, end})
		return false
	case r.stop != "" && string(line) == r.stop:
		return true
	case len(text) == 0:
		return false
	case r.remark().Match(text):
		r.comments = append(r.comments, span{at, end})
		return false
	}
	if len(line) <= maxLine {
		r.begins(at, end, indent, line, text)
		if r.here != nil {
			if m := r.here().FindSubmatch(line); m != nil {
				r.skip = hereEnd(r.src, end, string(m[1]))
				r.skip = min(LineEnd(r.src, r.skip)+1, len(r.src))
			}
		}
	}
	r.last = end
	return false
}

func (r *linedReader) begins(at, end, indent int, line, text []byte) {
	for _, w := range r.end {
		rest, ok := bytes.CutPrefix(text, []byte(w))
		if ok && (len(rest) == 0 || !isWordByte(rest[0]) || !isWordByte(w[0])) && len(r.stack) > 0 && r.stack[len(r.stack)-1].indent >= indent {
			r.close(indent, end)
			return
		}
	}
	m := r.begin().FindSubmatch(line)
	if m == nil {
		return
	}
	for len(m) > 4 && m[3] == nil {
		m = append(m[:1], m[4:]...)
	}
	kind, name := string(m[1]), string(m[3])
	kind = cmp.Or(kind, "function")
	if kind == "class" && name == "<<" { // class << self
		return
	}
	r.close(indent, r.last)
	s := Symbol{Name: name, Kind: kind, Start: at, Decl: at + indent, End: end, Signature: signature(text)}
	if scope := strings.Trim(string(m[2]), ".:"); scope != "self" && scope != "" {
		s.Scope = scope[strings.LastIndexAny(scope, ".:")+1:]
	}
	r.open(s, indent, slices.Contains(r.types, kind), oneLine(text, r.end) || r.short != nil && r.short().Match(text))
}

// close ends the definitions with at least the given indentation.
func (r *indented) close(indent, end int) {
	for len(r.stack) > 0 && r.stack[len(r.stack)-1].indent >= indent {
		if s := r.stack[len(r.stack)-1].symbol; s >= 0 {
			r.symbols[s].End = end
		}
		r.stack = r.stack[:len(r.stack)-1]
	}
}

// oneLine reports whether a definition ends on its first line.
func oneLine(text []byte, ends []string) bool {
	text = bytes.TrimRight(text, " \t;")
	for _, w := range ends {
		if rest, ok := bytes.CutSuffix(text, []byte(w)); ok && len(rest) > 0 && (rest[len(rest)-1] == ' ' || rest[len(rest)-1] == ';') {
			return true
		}
	}
	return false
}
