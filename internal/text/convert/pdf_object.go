package convert

import (
	"bytes"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

// The objects of a PDF file are nil, bool, float64, name, string, array, dict, ref and
// *stream; an operator of a content stream is a keyword.
type (
	name    string
	keyword string
	array   []any
	dict    map[name]any
	ref     int // the number of an object; generations are not distinguished
	stream  struct {
		dict
		place // of the data in the file
	}
)

// objectParser reads objects from b at i.
type objectParser struct {
	w     *writer
	b     []byte
	i     int
	spent int // the offset up to which the work is counted
	depth int
	at    place    // of the object in the file
	lock  *pdfLock // decrypts its strings; nil for none
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isDelimiter(c byte) bool { return strings.IndexByte("()<>[]{}/%", c) >= 0 }

// space skips white space and comments.
func (p *objectParser) space() {
	for p.i < len(p.b) {
		switch c := p.b[p.i]; {
		case isSpace(c):
			p.i++
		case c == '%':
			for p.i < len(p.b) && p.b[p.i] != '\n' && p.b[p.i] != '\r' {
				p.i++
			}
		default:
			return
		}
	}
}

// end is the keyword that next returns at the end of the input.
const end keyword = ""

// next reads an object or a keyword. A closing bracket is a keyword.
func (p *objectParser) next() any {
	v := p.object()
	if s, ok := v.(string); ok && p.lock != nil {
		v = string(p.lock.open(p.lock.strings, p.at, []byte(s)))
	}
	p.w.spend(64 + 4*(p.i-p.spent))
	p.spent = p.i
	return v
}

func (p *objectParser) object() any {
	p.space()
	if p.i >= len(p.b) {
		return end
	}
	switch c := p.b[p.i]; c {
	case '/':
		p.i++
		return name(p.nameText())
	case '(':
		return p.literal()
	case '[':
		p.i++
		return p.collect("]")
	case '<':
		if p.i+1 < len(p.b) && p.b[p.i+1] == '<' {
			p.i += 2
			return p.dict()
		}
		return p.hex()
	case '>':
		p.i++
		if p.i < len(p.b) && p.b[p.i] == '>' {
			p.i++
			return keyword(">>")
		}
		return keyword(">")
	case ']', '{', '}', ')':
		p.i++
		return keyword([]byte{c})
	}
	return p.word()
}

// collect reads the objects up to a closing keyword or the end of the input.
func (p *objectParser) collect(closing keyword) array {
	if p.depth++; p.depth > maxDepth {
		panic(errDepth)
	}
	a := array{}
	for {
		switch v := p.next().(type) {
		case keyword:
			if v == closing || v == end {
				p.depth--
				return a
			}
		default:
			p.w.spend(64)
			a = append(a, v)
		}
	}
}

func (p *objectParser) dict() dict {
	d := dict{}
	key, has := name(""), false
	for _, v := range p.collect(">>") {
		if has {
			d[key], has = v, false
		} else {
			key, has = v.(name)
		}
	}
	return d
}

// nameText reads a name after its slash.
func (p *objectParser) nameText() string {
	start := p.i
	for p.i < len(p.b) && !isSpace(p.b[p.i]) && !isDelimiter(p.b[p.i]) {
		p.i++
	}
	return nameEscape.ReplaceAllStringFunc(string(p.b[start:p.i]), func(escape string) string {
		return string(unhex([]byte(escape)))
	})
}

// nameEscape matches a byte in a name, such as "#20".
var nameEscape = regexp.MustCompile(`#[0-9A-Fa-f]{2}`)

// word reads a number, a reference or a keyword.
func (p *objectParser) word() any {
	start := p.i
	for p.i < len(p.b) && !isSpace(p.b[p.i]) && !isDelimiter(p.b[p.i]) {
		p.i++
	}
	word := string(p.b[start:p.i])
	switch word {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	}
	if word[0] > '9' {
		return keyword(word)
	}
	if n, err := strconv.Atoi(word); err == nil {
		if n >= 0 && p.refers() {
			return ref(n)
		}
		return float64(n)
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil {
		return f
	}
	return keyword(word)
}

// refers reports whether "0 R" follows a number, and skips it.
func (p *objectParser) refers() bool {
	i := p.i
	for i < len(p.b) && isSpace(p.b[i]) {
		i++
	}
	digits := i
	for i < len(p.b) && i-digits < 6 && '0' <= p.b[i] && p.b[i] <= '9' {
		i++
	}
	blanks := i
	for i < len(p.b) && isSpace(p.b[i]) {
		i++
	}
	if blanks == digits || i == blanks || i >= len(p.b) || p.b[i] != 'R' || i+1 < len(p.b) && !isSpace(p.b[i+1]) && !isDelimiter(p.b[i+1]) {
		return false
	}
	p.i = i + 1
	return true
}

// literal reads a string in parentheses.
func (p *objectParser) literal() string {
	var out []byte
	depth := 0
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; c {
		case '(':
			if depth++; depth > 1 {
				out = append(out, c)
			}
		case ')':
			if depth--; depth == 0 {
				p.i++
				return string(out)
			}
			out = append(out, c)
		case '\\':
			if p.i++; p.i < len(p.b) {
				out = p.escaped(out)
			}
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// escaped reads the rest of an escape sequence after its backslash.
func (p *objectParser) escaped(out []byte) []byte {
	c := p.b[p.i]
	if at := strings.IndexByte("nrtbf", c); at >= 0 {
		return append(out, "\n\r\t\b\f"[at])
	}
	switch {
	case '0' <= c && c <= '7':
		n := 0
		for digits := 0; digits < 3 && p.i < len(p.b) && '0' <= p.b[p.i] && p.b[p.i] <= '7'; digits++ {
			n = n*8 + int(p.b[p.i]-'0')
			p.i++
		}
		p.i--
		return append(out, byte(n))
	case c == '\r', c == '\n':
		if bytes.HasPrefix(p.b[p.i:], []byte("\r\n")) {
			p.i++
		}
		return out
	}
	return append(out, c)
}

// hex reads a string in angle brackets.
func (p *objectParser) hex() string {
	p.i++
	n := bytes.IndexByte(p.b[p.i:], '>')
	if n < 0 {
		n = len(p.b) - p.i
	}
	s := unhex(p.b[p.i : p.i+n])
	p.i = min(p.i+n+1, len(p.b))
	return string(s)
}

// unhex decodes hexadecimal digits. It ignores other bytes and adds a missing last 0.
func unhex(text []byte) []byte {
	digits := make([]byte, 0, len(text)+1)
	for _, c := range text {
		if '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' {
			digits = append(digits, c)
		}
	}
	if len(digits)%2 > 0 {
		digits = append(digits, '0')
	}
	n, _ := hex.Decode(digits, digits) // it never fails: they are digits
	return digits[:n]
}
