package markdown

import (
	"bytes"
	"strings"

	"cairn/internal/text/outline"
)

// parseSource makes a section of each symbol of a source file, with its comment and
// annotations. One-line members and prototypes without a comment and symbols inside functions only
// name the section that contains them. Code between two symbols is a section whose heading is
// its first line. The text before the first symbol (licence, imports) is the preamble.
func parseSource(name string, src []byte, body int) scanned {
	symbols, cut := outline.Outline(name, src[body:])
	s := sourceOutline{src: src, at: body, open: []openSymbol{{end: len(src)}}}
	s.out.cut = cut
	types := map[string]string{} // the declaration of each type by name
	for _, sym := range symbols {
		if _, ok := types[sym.Name]; !ok && sym.Scope == "" && sym.Kind != "impl" {
			types[sym.Name] = sym.Signature
		}
	}
	last := -1 // the start of the last heading
	for _, sym := range symbols {
		start := sym.Start + body
		s.marks(symbols, sym, start)
		member := sym.Parent >= 0 && !symbols[sym.Parent].Space()
		if sym.Local || start <= last || (member || sym.Kind == "prototype") && bytes.IndexByte(src[start:sym.End+body], '\n') < 0 {
			continue
		}
		last = start
		end := outline.LineEnd(src, sym.End+body)
		for len(s.open) > 1 && (s.top().end <= start || s.top().end < end) {
			s.cutAt(start)
			s.close()
		}
		if s.top().inside {
			start = s.rest(start, true)
		}
		s.top().inside = true
		h := heading{level: min(len(s.open), maxSourceLevel), text: sym.Signature, id: sym.Name, start: start, end: end}
		if sym.Scope != "" {
			h.within = scopeOf(types, sym)
		}
		if !s.out.head(h) {
			break
		}
		s.open = append(s.open, openSymbol{end: min(end, s.top().end), head: len(s.out.heads) - 1})
	}
	for len(s.open) > 0 {
		s.close()
	}
	if len(s.out.heads) >= maxHeadings { // the rest of the file belongs to the last one
		for i := range s.out.heads {
			s.out.heads[i].end = 0
		}
	}
	return s.out
}

// maxSourceLevel is the deepest level of a section.
const maxSourceLevel = 6

// sourceOutline builds the outline of a source file.
type sourceOutline struct {
	src  []byte
	out  scanned
	at   int          // the end of the last symbol inside the innermost open one
	open []openSymbol // the first stands for the file
}

type openSymbol struct {
	end    int
	head   int  // index of its heading
	inside bool // it contains a heading
}

func (s *sourceOutline) top() *openSymbol { return &s.open[len(s.open)-1] }

// cutAt ends the innermost symbol on the line before start at the latest. In broken code
// the next symbol can begin on its last line and continue after it.
func (s *sourceOutline) cutAt(start int) {
	if top := s.top(); top.end > start {
		top.end = start - 1
		s.out.heads[top.head].end = top.end
	}
}

// close ends the innermost symbol.
func (s *sourceOutline) close() {
	top := *s.top()
	if top.inside {
		s.rest(top.end, false)
	}
	s.at = top.end
	s.open = s.open[:len(s.open)-1]
}

// rest adds a heading for the code between the last symbol and to. It returns the start
// of the next symbol, which includes the comments directly before it. Blank lines and
// closing brackets belong to no section.
func (s *sourceOutline) rest(to int, next bool) int {
	first, end, trailing, text := -1, 0, -1, ""
	for at := s.at; at < to; {
		stop := min(outline.LineEnd(s.src, at), to)
		line := bytes.TrimSpace(s.src[at:stop])
		kind := lineKind(line)
		if kind != closing && first < 0 {
			first = at
		}
		switch {
		case kind == statement:
			if text == "" {
				text = string(line)
			}
			end, trailing = stop, -1
		case kind == remark && trailing < 0:
			trailing = at
		}
		at = stop + 1
	}
	switch {
	case first < 0:
		return to
	case next && text == "":
		return first
	case text == "": // comments at the end
		text = string(bytes.TrimSpace(s.src[first:outline.LineEnd(s.src, first)]))
		end = to
	case next && trailing >= 0:
		to = trailing
	case trailing >= 0:
		end = to
	}
	text = strings.TrimRight(strings.Join(strings.Fields(text[:runeStart(text, maxRest)]), " "), " {(=")
	s.out.head(heading{level: min(len(s.open), maxSourceLevel), text: text, slug: text, start: first, end: end})
	return to
}

// maxRest is the maximum length in bytes of a heading for code between symbols.
const maxRest = 80

type sourceLine int

const (
	statement sourceLine = iota
	remark               // a comment
	closing              // a blank line or the end of a block
)

// lineKind classifies a line between symbols.
func lineKind(line []byte) sourceLine {
	if len(bytes.Trim(line, "})];,>")) == 0 {
		return closing
	}
	for _, end := range []string{"end", "#endif", "#else", "#if", "# endif", "fi", "?>", "} //", "} /*", "}  //", "public:", "private:", "protected:"} {
		if bytes.HasPrefix(line, []byte(end)) && (len(line) == len(end) || end[0] == '#' || end[0] == '}' || line[len(end)] == ' ') {
			return closing
		}
	}
	for _, mark := range []string{"//", "/*", "*/", "* ", "--", "# ", `"""`, "<!--"} {
		if bytes.HasPrefix(line, []byte(mark)) {
			return remark
		}
	}
	if string(line) == "#" || string(line) == "*" {
		return remark
	}
	return statement
}

// marks adds the names of a symbol: its own, the one qualified by the enclosing symbols,
// and the other names of its group.
func (s *sourceOutline) marks(symbols []outline.Symbol, sym outline.Symbol, at int) {
	full := sym.Name
	if sym.Scope != "" {
		full = sym.Scope + "." + full
	}
	for p, depth := sym.Parent, 0; p >= 0 && depth < maxSourceLevel; p, depth = symbols[p].Parent, depth+1 {
		if !symbols[p].Space() {
			full = symbols[p].Name + "." + full
		}
	}
	for _, name := range append([]string{sym.Name, full}, sym.Names...) {
		s.out.mark(mark{name: name, at: at})
	}
}

// scopeOf returns the heading to put above a symbol that names its type: the declaration
// of the type if the file contains it.
func scopeOf(types map[string]string, sym outline.Symbol) string {
	if signature, ok := types[sym.Scope]; ok {
		return signature
	}
	if strings.HasPrefix(sym.Signature, "func ") {
		return "type " + sym.Scope
	}
	return sym.Scope
}
