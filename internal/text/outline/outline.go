// Package outline finds the symbols of source code: functions, methods and types, with their
// names, signatures and exact extents. It parses Go with package go/parser. For the other
// languages it combines a lexer for comments, strings and brackets with rules that
// recognize declarations. The package does not resolve names, expand macros or read files.
package outline

import (
	"bytes"
	"slices"
	"strings"
)

// Symbol is one declaration.
type Symbol struct {
	// Name is the declared name without its scope: "Search", "operator==", "~Index".
	Name string
	// Kind is the term of the language: "func", "class", "trait", "table".
	Kind string
	// Signature is the declaration without its body, on one line of at most maxSignature
	// bytes.
	Signature string
	// Scope is the type that the declaration names: the receiver of a Go method, or the
	// class of a C++ method that is defined outside of the class. It is "" for any other
	// symbol.
	Scope string
	// Names are the further names that the declaration declares, as in a group of
	// constants.
	Names []string
	// Start is the start of the line on which the symbol's comment, annotations or
	// declaration begin. Decl is the start of the declaration and End its end. All are
	// byte offsets.
	Start, Decl, End int
	// Parent is the index of the enclosing symbol, -1 for none.
	Parent int
	// Local reports that the symbol is inside a function.
	Local bool
}

// Space reports whether the symbol only contains others: a namespace, module or package.
func (s *Symbol) Space() bool {
	switch s.Kind {
	case "namespace", "mod", "module", "package":
		return true
	}
	return false
}

const (
	// MaxSize is the number of bytes read from a file. Larger files are usually generated.
	MaxSize = 1 << 20
	// maxSymbols is the maximum number of symbols of a file.
	maxSymbols = 10_000
	// maxSignature is the maximum length of a signature in bytes. Every chunk contains
	// the signature.
	maxSignature = 160
	// maxDepth is the maximum nesting of brackets.
	maxDepth = 500
)

// IsSource reports whether the name of a file is that of source code.
func IsSource(name string) bool {
	_, ok := languages[Ext(name)]
	return ok
}

// Outline returns the symbols of a file, sorted by Start, each before the symbols inside
// it. It reads at most MaxSize bytes and maxSymbols symbols. cut reports that there may be
// more. Outline accepts any input; it finds fewer symbols in broken code. The only line
// break in src must be "\n".
func Outline(name string, src []byte) (symbols []Symbol, cut bool) {
	l := languages[Ext(name)]
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
	lines    []int32 // the offsets of line starts
	tokens   []token // not used for Go, Ruby, Lua and shell
	comments []span  // the comments that begin a line, in order
	symbols  []Symbol
	cut      bool
}

type span struct{ start, end int }

// add adds a symbol and returns its index, or -1 if there are too many.
func (o *outline) add(s Symbol) int {
	if len(o.symbols) >= maxSymbols {
		o.cut = true
		return -1
	}
	s.Start = o.above(s.Start)
	o.symbols = append(o.symbols, s)
	return len(o.symbols) - 1
}

// above returns the start of the line that contains offset at, or of the comments directly
// above the line.
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

// order sorts the symbols by Start and corrects the ends and parents that are wrong in
// broken code.
func (o *outline) order() {
	index := make([]int, len(o.symbols))
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, func(a, b int) int { return o.symbols[a].Start - o.symbols[b].Start })
	sorted := make([]Symbol, len(index))
	at := make([]int, len(index)) // the new index of each symbol
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
	fields := bytes.Fields(text[:min(len(text), 8*maxSignature)])
	s := strings.TrimRight(string(bytes.Join(fields, []byte(" "))), " {=:;,")
	if len(s) > maxSignature {
		s = strings.ToValidUTF8(s[:maxSignature-len("…")], "") + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// text returns the text of token i, "" if there is no such token.
func (o *outline) text(i int) string {
	if i < 0 || i >= len(o.tokens) {
		return ""
	}
	return string(o.src[o.tokens[i].start:o.tokens[i].end])
}

func (o *outline) isWord(i int) bool {
	return i >= 0 && i < len(o.tokens) && o.tokens[i].kind == word
}

// is reports whether token i is the punctuation c.
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

// LineEnd returns the offset of the next line break at or after at, or the length of src.
func LineEnd(src []byte, at int) int {
	if n := bytes.IndexByte(src[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(src)
}
