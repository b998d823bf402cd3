package outline

import (
	"bytes"
	"strings"
)

// token is a word, a literal or punctuation.
type token struct {
	start, end int32 // byte offsets
	// match is the index of the other bracket of a pair, 0 until the pair is complete.
	match int32
	kind  tokenKind
	c     byte // the first byte
}

type tokenKind uint8

const (
	word tokenKind = iota
	punct
	arrow     // => or ->
	scope     // ::
	literal   // string, number or regular expression
	newline   // one for each run of line breaks
	directive // a line of the C preprocessor
)

// lexis describes the lexical syntax of a language.
type lexis struct {
	comments []string // the markers of line comments
	block    bool     // comments in /* */
	nested   bool     // block comments nest
	quotes   string   // the quotes of strings that end with the line
	long     string   // the quotes of strings that may span lines
	doubled  bool     // a quote in a string is doubled; there are no escapes
	triple   bool     // strings in three quotes
	nest     string   // the marker of code in a string, such as "${"
	letters  string   // further characters of words, apart from letters, digits and _
	newlines bool     // line breaks are tokens
	hash     bool     // lines that begin with # are directives
	regexps  bool     // a slash may begin a regular expression
	// special reads a token that is particular to the language, and returns its end.
	special func(x *lexer) (end int, kind tokenKind, ok bool)
}

// lexer turns a file into tokens in one pass.
type lexer struct {
	*lexis
	src    []byte
	i      int
	line   int // the start of the line of i
	tokens []token
	o      *outline
}

// lex reads the tokens and comments of a file.
func (o *outline) lex() {
	x := &lexer{lexis: o.lang.lexis, src: o.src, o: o, tokens: make([]token, 0, len(o.src)/5)}
	for x.i < len(x.src) {
		x.next()
	}
	o.tokens = x.tokens
}

func (x *lexer) next() {
	c := x.src[x.i]
	if x.special != nil {
		if end, kind, ok := x.special(x); ok {
			x.emit(end, kind)
			return
		}
	}
	switch {
	case c == '\n':
		if n := len(x.tokens); x.newlines && (n == 0 || x.tokens[n-1].kind != newline) {
			x.emit(x.i+1, newline)
			return
		}
		x.advance(x.i + 1)
	case c == ' ' || c == '\t' || c == '\f' || c == '\v':
		x.i++
	case x.comment():
	case x.isLetter(c):
		x.emit(x.wordEnd(), word)
	case isDigit(c):
		x.emit(x.wordEnd(), literal)
	case strings.IndexByte(x.quotes, c) >= 0 || strings.IndexByte(x.long, c) >= 0:
		x.emit(x.quoted(x.i), literal)
	case c == '#' && x.hash && x.beginsLine():
		x.emit(x.logicalLine(), directive)
	case c == '/' && x.regexps && x.regexpAllowed():
		x.emit(x.regexp(), literal)
	case c == ':' && x.follows("::"):
		x.emit(x.i+2, scope)
	case c == '=' && x.follows("=>"), c == '-' && x.follows("->"):
		x.emit(x.i+2, arrow)
	default:
		x.emit(x.i+1, punct)
	}
}

func (x *lexer) emit(end int, kind tokenKind) {
	end = min(max(end, x.i+1), len(x.src))
	x.tokens = append(x.tokens, token{start: int32(x.i), end: int32(end), kind: kind, c: x.src[x.i]})
	x.advance(end)
}

// advance moves to end.
func (x *lexer) advance(end int) {
	if n := bytes.LastIndexByte(x.src[x.i:end], '\n'); n >= 0 {
		x.line = x.i + n + 1
	}
	x.i = end
}

func (x *lexer) follows(s string) bool { return bytes.HasPrefix(x.src[x.i:], []byte(s)) }

func (x *lexer) isLetter(c byte) bool {
	return isLetter(c) || strings.IndexByte(x.letters, c) >= 0
}

// wordEnd returns the end of the word or number at x.i.
func (x *lexer) wordEnd() int {
	end := x.i + 1
	for end < len(x.src) && (x.isLetter(x.src[end]) || isDigit(x.src[end])) {
		end++
	}
	return end
}

// isLetter reports whether c is a letter in every language.
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80 }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// beginsLine reports whether only blanks precede x.i on its line.
func (x *lexer) beginsLine() bool {
	n := len(x.tokens)
	return n == 0 || int(x.tokens[n-1].end) <= x.line
}

// comment skips a comment. It returns false if there is none.
func (x *lexer) comment() bool {
	end := -1
	for _, c := range x.comments {
		if x.follows(c) {
			end = LineEnd(x.src, x.i)
		}
	}
	if x.block && x.follows("/*") {
		end = x.blockEnd()
	}
	if end < 0 {
		return false
	}
	if x.beginsLine() {
		x.o.comments = append(x.o.comments, span{x.i, end})
	}
	x.advance(end)
	return true
}

func (x *lexer) blockEnd() int {
	for i, depth := x.i+2, 1; i < len(x.src); i++ {
		switch {
		case bytes.HasPrefix(x.src[i:], []byte("*/")):
			if depth--; depth == 0 {
				return i + 2
			}
			i++
		case x.nested && bytes.HasPrefix(x.src[i:], []byte("/*")):
			depth++
			i++
		}
	}
	return len(x.src)
}

// logicalLine returns the end of a line, which may continue after a backslash.
func (x *lexer) logicalLine() int {
	end := LineEnd(x.src, x.i)
	for end < len(x.src) && x.src[end-1] == '\\' {
		end = LineEnd(x.src, end+1)
	}
	return end
}

// quoted returns the end of the string that begins at i.
func (x *lexer) quoted(i int) int {
	quote := x.src[i : i+1]
	if x.triple && bytes.HasPrefix(x.src[i:], bytes.Repeat(quote, 3)) {
		for at := i + 3; ; at++ {
			switch {
			case at >= len(x.src):
				return len(x.src)
			case x.src[at] == '\\' && quote[0] != '`':
				at++
			case bytes.HasPrefix(x.src[at:], bytes.Repeat(quote, 3)):
				at += 3
				for at < len(x.src) && x.src[at] == quote[0] { // """" ends with a quote inside
					at++
				}
				return at
			}
		}
	}
	return x.string(i, 0)
}

// maxNest is the maximum nesting of strings in the code of strings.
const maxNest = 20

// string returns the end of the string that begins at i with one quote. nested is the
// number of strings around it.
func (x *lexer) string(i, nested int) int {
	quote := x.src[i]
	long := strings.IndexByte(x.long, quote) >= 0
	for i++; i < len(x.src); i++ {
		c := x.src[i]
		switch {
		case c == quote: // a doubled one begins another string
			return i + 1
		case c == '\n' && !long:
			return i
		case x.nest != "" && quote != '\'' && bytes.HasPrefix(x.src[i:], []byte(x.nest)) && nested < maxNest &&
			(quote == '`' || x.nest != "${" || !x.regexps):
			i = x.embedded(i+len(x.nest), nested) - 1
		case c == '\\' && !x.doubled:
			i++
		}
	}
	return len(x.src)
}

// embedded returns the end of the code in a string; the code begins at i.
func (x *lexer) embedded(i, nested int) int {
	opener := x.nest[len(x.nest)-1]
	closer := map[byte]byte{'{': '}', '(': ')'}[opener]
	for depth := 1; i < len(x.src); i++ {
		switch c := x.src[i]; {
		case c == opener:
			depth++
		case c == closer:
			if depth--; depth == 0 {
				return i + 1
			}
		case c == '\n' && opener == '(':
			return i
		case strings.IndexByte(x.quotes, c) >= 0 || strings.IndexByte(x.long, c) >= 0:
			i = x.string(i, nested+1) - 1
		}
	}
	return len(x.src)
}

// regexpAllowed reports whether a slash begins a regular expression. After a value it is a
// division.
func (x *lexer) regexpAllowed() bool {
	n := len(x.tokens) - 1
	for n >= 0 && x.tokens[n].kind == newline {
		n--
	}
	if n < 0 {
		return true
	}
	t := x.tokens[n]
	switch t.kind {
	case word:
		switch string(x.src[t.start:t.end]) {
		case "return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "do", "yield", "await":
			return true
		}
		return false
	case literal:
		return false
	case punct:
		return t.c != ')' && t.c != ']' && t.c != '}'
	}
	return true
}

// maxRegexp is the maximum length of a regular expression in bytes, so that the lexer takes
// linear time for slashes that begin none.
const maxRegexp = 1 << 10

// regexp returns the end of a regular expression, or of the slash if it does not begin
// one.
func (x *lexer) regexp() int {
	class := false
	for i := x.i + 1; i < min(len(x.src), x.i+maxRegexp); i++ {
		switch c := x.src[i]; {
		case c == '\n':
			return x.i + 1
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			return i + 1
		}
	}
	return x.i + 1
}
