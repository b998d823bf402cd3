// Package code finds the symbols of source code: functions, methods and types, with
// their names, signatures and exact extents. Go has a real parser. The other languages
// have a lexer that knows their comments, strings and brackets, and rules for what
// begins a declaration. The package does not resolve names, expand macros or read files.
package code

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// Symbol is one declaration.
type Symbol struct {
	// Name is the declared name without its scope: "Search", "operator==", "~Index".
	Name string
	// Kind is the word of the language: "func", "class", "trait", "table".
	Kind string
	// Signature is the declaration up to its body on one line, at most maxSignature bytes.
	Signature string
	// Scope is the type that the declaration names: the receiver of a Go method, the
	// class of a C++ method that is defined outside of it. "" in all other cases.
	Scope string
	// Names are further names that the declaration gives, as in a group of constants.
	Names []string
	// Start is the first byte of the line on which its comment, annotations or
	// declaration begin; Decl that of the declaration; End is behind its last byte.
	Start, Decl, End int
	// Parent is the index of the symbol that encloses it, -1 at the top.
	Parent int
	// Local is whether it is inside a function.
	Local bool
}

// Space reports whether the symbol only holds others: a namespace, module or package.
func (s *Symbol) Space() bool {
	switch s.Kind {
	case "namespace", "mod", "module", "package":
		return true
	}
	return false
}

const (
	// MaxSize is how many bytes of a file are read. Longer files are generated.
	MaxSize = 1 << 20
	// maxSymbols bounds the symbols of a file.
	maxSymbols = 10_000
	// maxSignature bounds a signature, in bytes: it is part of every chunk.
	maxSignature = 160
	// maxDepth bounds how deep brackets are followed.
	maxDepth = 500
)

// IsSource reports whether a file of that name is source code.
func IsSource(name string) bool {
	_, ok := languages[strings.ToLower(path.Ext(name))]
	return ok
}

// Outline returns the symbols of a file in the order of their Starts, a symbol before
// those inside it. It reads at most MaxSize bytes and maxSymbols symbols; cut is
// whether there may be more. It never fails: broken code has fewer symbols. src has
// only "\n" as line breaks.
func Outline(name string, src []byte) (symbols []Symbol, cut bool) {
	l := languages[strings.ToLower(path.Ext(name))]
	if l == nil {
		return nil, false
	}
	if len(src) > MaxSize {
		src, cut = src[:MaxSize], true
	}
	o := &outline{src: src, lang: l, lines: []int32{0}}
	for i, c := range src {
		if c == '\n' {
			o.lines = append(o.lines, int32(i+1))
		}
	}
	l.read(o)
	o.order()
	return o.symbols, cut || o.cut
}

// outline collects the symbols of a file.
type outline struct {
	src      []byte
	lang     *language
	lines    []int32 // where they begin
	tokens   []token // of all languages but Go, Ruby, Lua and shell
	comments []span  // of lines of their own, in order
	symbols  []Symbol
	cut      bool
}

type span struct{ start, end int }

// add adds a symbol and returns its index, or -1 when there are too many.
func (o *outline) add(s Symbol) int {
	if len(o.symbols) >= maxSymbols {
		o.cut = true
		return -1
	}
	s.Start = o.above(s.Start)
	o.symbols = append(o.symbols, s)
	return len(o.symbols) - 1
}

// above returns the start of the line at offset at, or of the comments directly above.
func (o *outline) above(at int) int {
	start := o.lineStart(at)
	n, found := slices.BinarySearchFunc(o.comments, start, func(c span, at int) int { return c.start - at })
	if found {
		n++
	}
	for n--; n >= 0; n-- {
		c := o.comments[n]
		gap := o.src[min(c.end, start):start]
		if c.end > start || bytes.Count(gap, []byte("\n")) > 1 || len(bytes.TrimSpace(gap)) > 0 {
			break
		}
		start = o.lineStart(c.start)
	}
	return start
}

// order sorts the symbols, drops those of one start and corrects what a broken file
// made of extents.
func (o *outline) order() {
	index := make([]int, len(o.symbols))
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, func(a, b int) int { return o.symbols[a].Start - o.symbols[b].Start })
	sorted := make([]Symbol, len(index))
	at := make([]int, len(index))
	for n, i := range index {
		at[i] = n
		s := o.symbols[i]
		s.End = min(max(s.End, s.Decl), len(o.src))
		sorted[n] = s
	}
	for n := range sorted {
		s := &sorted[n]
		if s.Parent >= 0 {
			if s.Parent = at[s.Parent]; s.Parent >= n {
				s.Parent = -1
			}
		}
	}
	o.symbols = sorted
}

// signature returns a declaration on one line.
func signature(text []byte) string {
	var b strings.Builder
	for _, f := range bytes.Fields(text[:min(len(text), 8*maxSignature)]) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.Write(f)
	}
	s := strings.TrimRight(b.String(), " {=:;,")
	if len(s) > maxSignature {
		s = strings.ToValidUTF8(s[:maxSignature-len("…")], "") + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// text returns token i, "" beyond the tokens.
func (o *outline) text(i int) string {
	if i < 0 || i >= len(o.tokens) {
		return ""
	}
	return string(o.src[o.tokens[i].start:o.tokens[i].end])
}

func (o *outline) isWord(i int) bool {
	return i >= 0 && i < len(o.tokens) && o.tokens[i].kind == word
}

// is reports whether token i is a mark of punctuation.
func (o *outline) is(i int, c byte) bool {
	return i >= 0 && i < len(o.tokens) && o.tokens[i].kind == punct && o.tokens[i].c == c
}

// opens and closes report whether token i is a bracket.
func (o *outline) opens(i int) bool  { return o.is(i, '(') || o.is(i, '[') || o.is(i, '{') }
func (o *outline) closes(i int) bool { return o.is(i, ')') || o.is(i, ']') || o.is(i, '}') }

// lineStart returns the start of the line of the byte at offset at.
func (o *outline) lineStart(at int) int {
	n, found := slices.BinarySearch(o.lines, int32(at))
	if !found {
		n--
	}
	return int(o.lines[n])
}

// lineEnd returns the offset of the line break at or behind at.
func lineEnd(src []byte, at int) int {
	if n := bytes.IndexByte(src[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(src)
}
