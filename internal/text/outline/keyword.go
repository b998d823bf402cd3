package outline

import (
	"bytes"
	"strings"
)

// declaration is the classification of a statement. Its Name is "" if the statement
// declares no symbol.
type declaration struct {
	Symbol
	inner     frameKind // of the brace after it
	goesOn    bool      // the statement continues after the brace
	keepOpen  bool      // the statement has not ended
	constants bool      // the brace opens enum constants
	first     int       // the first token, annotations included
	keyword   int       // the first token after annotations
	until     int       // the token after the signature, 0 for the end of the statement
}

func (d *declaration) end(i int) int {
	if d.until > 0 {
		return d.until
	}
	return i
}

// maxStatement is the number of tokens of a statement that are searched for a declaration.
const maxStatement = 300

// role is the kind of declaration that a keyword begins.
type role uint8

const (
	aType role = iota + 1
	aFunction
	aValue
	aSpace
	anImplementation
	aModifier
)

// words returns the roles of the keywords in the lists.
func words(types, functions, values, spaces, modifiers string) map[string]role {
	return byWord(map[role]string{aType: types, aFunction: functions, aValue: values, aSpace: spaces, aModifier: modifiers})
}

// byKeyword classifies statements of Rust, Kotlin, Swift, PHP and Scala, in which a
// declaration begins with a keyword.
func byKeyword(p *braces, from, to int, body bool) declaration {
	none := declaration{inner: block}
	first := from
	for first < to && p.tokens[first].kind == newline {
		first++
	}
	k := p.pastAnnotations(first, to)
	start := k
	limit := min(to, k+maxStatement)
	for ; k < limit; k = p.pastAnnotations(k, to) {
		if p.tokens[k].kind == literal {
			k++
			continue
		}
		if !p.isWord(k) || p.roleOf(k) != aModifier {
			break
		}
		if k++; p.is(k, '(') {
			k = p.past(k)
		}
	}
	r := p.roleOf(k)
	if r == 0 || r == aValue && (p.top().kind != file || body && p.lang.valuesBodiless) {
		return none
	}
	d := declaration{first: first, keyword: start, inner: map[role]frameKind{aType: typ, aFunction: fun, aSpace: file, anImplementation: typ, aValue: block}[r]}
	d.Kind = p.text(k)
	d.Name = p.nameAfter(k, limit, r)
	if r == aValue {
		d.inner, d.goesOn = block, true
	}
	j := k + 1
	for r == aFunction && j < limit && !p.is(j, '(') {
		j++
	}
	for ; j < limit; j++ { // look for an expression body
		if p.is(j, '(') || p.is(j, '[') {
			j = p.past(j) - 1
		} else if p.is(j, '<') && p.isWord(j-1) {
			j = p.pastAngles(j, limit) - 1
		} else if p.is(j, '=') && !p.is(j+1, '=') {
			d.until = j
			if r == aFunction {
				d.goesOn = true
			}
			break
		}
	}
	return d
}

// roleOf returns the role of the word at token i, which depends on the next word.
func (p *braces) roleOf(i int) role {
	text := p.text(i)
	r := p.lang.keywords[text]
	next := p.lang.keywords[p.text(i+1)]
	switch {
	case text == "class" && (next == aFunction || next == aValue || next == aModifier), // Swift's "class func"
		text == "fun" && next == aType,       // Kotlin's "fun interface"
		text == "const" && next == aFunction, // Rust's "const fn"
		text == "const" && next == aModifier,
		text == "case" && next == aType: // Scala's "case class"
		return aModifier
	}
	return r
}

// nameAfter returns the name that the declaration with the keyword at token k declares.
func (p *braces) nameAfter(k, to int, r role) string {
	j := k + 1
	text := p.text(k)
	if n, ok := p.lang.named[text]; ok && !p.isWord(j) {
		if text == "object" && (k == 0 || p.text(k-1) != "companion") {
			return ""
		}
		return n
	}
	if p.is(j, '!') { // macro_rules!
		j++
	}
	if p.is(j, '&') { // a PHP function that returns a reference
		j++
	}
	if p.is(j, '<') {
		j = p.pastAngles(j, to)
	}
	if r == anImplementation {
		return p.implemented(j, to)
	}
	for j < to && p.isWord(j) && p.lang.keywords[p.text(j)] == aModifier && p.isWord(j+1) { // static mut X
		j++
	}
	if r != aType && p.lang.receivers { // fun A.b(), val List<A>.b: Int
		name := ""
		for ; j < to; j++ {
			if r == aValue && (p.is(j, ':') || p.is(j, '=') || p.text(j) == "by" || p.tokens[j].kind == newline) {
				break
			} else if p.isWord(j) {
				name = p.text(j)
			} else if p.is(j, '(') {
				end := p.past(j)
				if !p.is(end, '.') && !(p.is(end, '?') && p.is(end+1, '.')) {
					break
				}
				j = end // fun (() -> T).name(): the parentheses are the type of the receiver
			}
		}
		return strings.Trim(name, "`")
	}
	if p.isWord(j) {
		name := strings.Trim(p.text(j), "`")
		if p.lang.dotted {
			for p.is(j+1, '.') && p.isWord(j+2) {
				j += 2
				name = p.text(j)
			}
		}
		return name
	}
	if r == aFunction && p.lang.operators { // func == (a, b)
		n := j
		for n < to && !p.is(n, '(') && !p.isWord(n) && n < j+4 {
			n++
		}
		if n > j && n < len(p.tokens) {
			return string(bytes.TrimSpace(p.src[p.tokens[j].start:p.tokens[n-1].end]))
		}
	}
	return ""
}

// implemented returns the type of a Rust impl.
func (p *braces) implemented(j, to int) string {
	name := ""
	for ; j < to; j++ {
		switch {
		case p.is(j, '<'):
			j = p.pastAngles(j, to) - 1
		case p.is(j, '('), p.is(j, '['):
			j = p.past(j) - 1
		case p.isWord(j) && p.text(j) == "for":
			name = ""
		case p.isWord(j) && p.text(j) == "where":
			return name
		case p.isWord(j):
			name = p.text(j)
		}
	}
	return name
}

func firstWord(b []byte) string {
	b = bytes.TrimLeft(b, " \t")
	n := 0
	for n < len(b) && (b[n]|0x20 >= 'a' && b[n]|0x20 <= 'z') {
		n++
	}
	return string(b[:n])
}
