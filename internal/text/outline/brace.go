package outline

import "slices"

// frame is an open bracket.
type frame struct {
	kind   frameKind
	open   int  // the token of the bracket
	c      byte // the closing bracket
	parent int  // the parent of symbols inside, -1 for none
	symbol int  // the symbol whose body it is, -1 for none
	local  bool // inside a function
	// statement is the first token of the statement that contains the bracket. goesOn
	// reports that the statement continues after the bracket.
	statement int
	goesOn    bool
	// pending is the symbol that ends with the current statement, -1 for none.
	pending int
	// constants reports that the bracket is the body of an enum before its semicolon.
	constants bool
	// listed reports that the current statement declares several variables.
	listed bool
}

type frameKind uint8

const (
	file    frameKind = iota // also a namespace
	typ                      // the body of a type
	fun                      // the body of a function
	block                    // any other body
	object                   // an object literal
	group                    // parentheses or square brackets
	nothing                  // contains no symbols
)

// braces reads a language whose bodies are in braces.
type braces struct {
	*outline
	stack []frame
	over  int // the number of open brackets beyond maxDepth
	steps int // the number of tokens classified
	from  int // the first token of the current statement
	// conditions are the states at the open #if directives, the innermost last. Each
	// branch of a condition begins with the brackets that were open at its #if.
	conditions []condition
}

type condition struct {
	stack []frame
	over  int
}

// maxConditions is the maximum nesting of conditions.
const maxConditions = 50

func readBraces(o *outline) {
	o.lex()
	p := &braces{outline: o}
	p.stack = append(p.stack, frame{kind: file, parent: -1, symbol: -1, pending: -1})
	for i := range p.tokens {
		p.token(i)
	}
	for len(p.stack) > 1 {
		p.pop(len(p.tokens) - 1)
	}
	p.finish(len(p.tokens))
}

func (p *braces) top() *frame { return &p.stack[len(p.stack)-1] }

func (p *braces) token(i int) {
	t := &p.tokens[i]
	switch t.kind {
	case directive:
		p.directive(i)
		if p.from == i {
			p.from = i + 1
		}
		return
	case newline:
		if k := p.top().kind; k != group && !p.continues(i) {
			p.top().listed = false
			p.finish(i)
		}
		return
	case punct:
	default:
		return
	}
	switch t.c {
	case '{':
		p.open(i)
	case '(':
		p.push(frame{kind: group, c: ')'}, i)
	case '[':
		p.push(frame{kind: group, c: ']'}, i)
	case ')', ']', '}':
		p.close(i)
	case ';':
		if p.top().kind != group {
			p.top().constants, p.top().listed = false, false
			p.finish(i)
		}
	case ',':
		if k := p.top().kind; k == object || k == group || p.top().constants || p.lang.lists && p.list(i) {
			p.finish(i)
		}
	}
}

// push opens the bracket at token i.
func (p *braces) push(f frame, i int) {
	if len(p.stack) >= maxDepth {
		p.over++
		return
	}
	up := p.top()
	f.open, f.statement, f.pending = i, p.from, -1
	if f.kind == group {
		f.parent, f.symbol, f.local, f.goesOn = up.parent, -1, up.local, true
		if up.kind == nothing {
			f.kind = nothing
		}
	}
	p.stack = append(p.stack, f)
	p.from = i + 1
}

// open opens the brace at token i.
func (p *braces) open(i int) {
	up := p.top()
	f := frame{kind: nothing, c: '}', parent: up.parent, symbol: -1, local: up.local}
	if up.kind == nothing || len(p.stack) >= maxDepth {
		p.push(f, i)
		return
	}
	d := p.classify(p.from, i, true)
	f.kind, f.goesOn = d.inner, d.goesOn
	if d.Name != "" && (up.pending < 0 || !p.lang.once) { // else a further brace of the same declaration
		if f.symbol = p.declare(d, d.end(i)); f.symbol >= 0 {
			f.parent = f.symbol
		}
	}
	f.local = up.local || d.inner == fun
	f.constants = d.constants
	if d.inner == fun && p.lang.opaque {
		f.kind = nothing
	}
	p.push(f, i)
}

// maxSteps is the mean number of times that a token is classified before the reader
// gives up. Only generated code exceeds it.
const maxSteps = 16

// classify returns what the statement of the tokens [from, to) declares.
func (p *braces) classify(from, to int, body bool) declaration {
	p.steps += min(max(to-from, 0), maxStatement)
	if p.steps > maxSteps*(len(p.tokens)+maxStatement) {
		p.cut = true
		return declaration{inner: nothing}
	}
	return p.lang.classify(p, from, to, body)
}

// declare adds a symbol whose signature ends before token i. It returns the symbol's
// index, -1 if there are too many.
func (p *braces) declare(d declaration, i int) int {
	up := p.top()
	d.Parent, d.Local = up.parent, up.local
	d.Start, d.End = int(p.tokens[d.first].start), int(p.tokens[max(d.keyword, i-1)].end)
	d.Decl = int(p.tokens[d.keyword].start)
	d.Signature = signature(p.src[d.Decl:max(d.Decl, int(p.tokens[max(d.keyword, i-1)].end))])
	return p.add(d.Symbol)
}

// close closes the bracket that token i matches. It ignores an unmatched token.
func (p *braces) close(i int) {
	if p.over > 0 {
		p.over--
		return
	}
	c := p.tokens[i].c
	for n := len(p.stack) - 1; n > 0; n-- {
		switch f := p.stack[n]; {
		case f.c == c:
			for len(p.stack) > n+1 {
				p.pop(i)
			}
			p.tokens[f.open].match, p.tokens[i].match = int32(i), int32(f.open)
			p.pop(i)
			return
		case f.c == '}':
			return // a stray parenthesis
		}
	}
}

// pop closes the innermost frame at token i.
func (p *braces) pop(i int) {
	p.finish(i)
	f := *p.top()
	p.stack = p.stack[:len(p.stack)-1]
	if f.symbol >= 0 {
		p.symbols[f.symbol].End = int(p.tokens[i].end)
	}
	p.from = i + 1
	if f.goesOn {
		p.from = f.statement
		if f.symbol >= 0 {
			p.top().pending = f.symbol
		}
	}
}

// list reports whether the comma at token i separates JavaScript variables, as in
// "var a = 1, b = 2", or members of an interface, and not types in angle brackets.
func (p *braces) list(i int) bool {
	from := p.pastModifiers(p.from)
	for j := max(from, i-maxAngles); j < i; j++ {
		if p.is(j, '<') && (p.isWord(j-1) || p.is(j-1, '=')) && p.pastAngles(j, len(p.tokens)) > i {
			return false
		}
	}
	p.top().listed = p.top().listed || p.lists(from)
	return p.top().listed || p.top().kind == typ
}

// lists reports whether token i is a keyword that may declare several variables.
func (p *braces) lists(i int) bool { return p.lang.lists && p.lang.keywords[p.text(i)] == aValue }

// pastModifiers returns the first token at or after i that is neither a line break, an
// annotation nor a modifier such as export.
func (p *braces) pastModifiers(i int) int {
	for i = p.pastAnnotations(i, len(p.tokens)); p.lang.keywords[p.text(i)] == aModifier; {
		i++
	}
	return i
}

// pastLines returns the first token at or after i that is not a line break.
func (p *braces) pastLines(i int) int {
	for i < len(p.tokens) && p.tokens[i].kind == newline {
		i++
	}
	return i
}

// finish ends the statement before token i.
func (p *braces) finish(i int) {
	f := p.top()
	from := p.from
	p.from = i + 1
	for from < i && p.tokens[from].kind == newline {
		from++
	}
	if from >= i || f.kind == nothing {
		return
	}
	end := int(p.tokens[i-1].end)
	if i < len(p.tokens) && p.tokens[i].c == ';' && p.tokens[i].kind == punct {
		end = int(p.tokens[i].end)
	}
	if f.pending >= 0 {
		p.symbols[f.pending].End = end
		f.pending = -1
		if p.lang.once {
			return
		}
	}
	if f.constants || f.kind == group {
		return
	}
	d := p.classify(from, i, false)
	if d.keepOpen {
		p.from = from
		return
	}
	if d.Name == "" {
		return
	}
	if n := p.declare(d, d.end(i)); n >= 0 {
		p.symbols[n].End = end
	}
}

// directive handles the conditions of the C preprocessor.
func (p *braces) directive(i int) {
	t := &p.tokens[i]
	switch name := firstWord(p.src[t.start+1 : t.end]); name {
	case "if", "ifdef", "ifndef":
		if len(p.conditions) < maxConditions {
			p.conditions = append(p.conditions, condition{slices.Clone(p.stack), p.over})
		}
	case "else", "elif":
		if n := len(p.conditions); n > 0 {
			c := p.conditions[n-1]
			p.stack, p.over, p.from = append(p.stack[:0], c.stack...), c.over, i+1
		}
	case "endif":
		if n := len(p.conditions); n > 0 {
			p.conditions = p.conditions[:n-1]
		}
	}
	if p.lang.directive != nil {
		p.lang.directive(p, t)
	}
}

// continues reports whether the statement continues after the line break at token i.
func (p *braces) continues(i int) bool {
	if i == 0 || i+1 >= len(p.tokens) {
		return false
	}
	switch before := p.tokens[i-1]; before.kind {
	case arrow, scope:
		return true
	case word:
		switch p.text(i - 1) {
		case "extends", "implements", "class", "interface", "fun", "func", "typealias":
			return true
		}
		if p.lists(i-1) && p.pastModifiers(p.from) == i-1 {
			return true
		}
	case punct:
		switch before.c {
		case ')', ']', '}', '>', '!', '?', ';':
		case '*':
			return !p.is(i-2, '.') // import java.util.*
		default:
			return true
		}
	}
	after := p.tokens[i+1]
	switch after.kind {
	case arrow, scope:
		return true
	case punct:
		switch after.c {
		case '{':
			return p.classify(p.from, i, true).Name != "" // the brace belongs to the statement
		case '.', '=', ':', '?', ',', '&', '|', '+', '*', ')', ']', '<', '>':
			return true
		}
	case word:
		switch p.text(i + 1) {
		case "where", "extends", "implements", "throws", "else", "catch", "finally", "instanceof", "in", "as", "is", "of":
			return true
		}
	}
	// Kotlin's primary constructor may follow on the next line.
	if p.lang.receivers && p.text(p.pastModifiers(i)) == "constructor" && p.roleOf(p.pastModifiers(p.from)) == aType {
		return true
	}
	// An annotation is part of the next statement.
	return p.is(p.from, '@') && p.pastAnnotations(p.from, i) >= i
}

// past returns the token after the bracket pair that opens at token i, or i+1 if the
// bracket is not closed.
func (p *braces) past(i int) int {
	if m := int(p.tokens[i].match); m > i {
		return m + 1
	}
	return i + 1
}

// maxAngles is the maximum number of tokens between angle brackets.
const maxAngles = 100

// pastAngles returns the token after the pair of angle brackets that opens at token i, or
// i+1 if it is not closed.
func (p *braces) pastAngles(i, to int) int {
	depth := 0
	for j := i; j < min(to, i+maxAngles); j++ {
		switch {
		case p.is(j, '<'):
			depth++
		case p.is(j, '>'):
			if depth--; depth == 0 {
				return j + 1
			}
		case p.opens(j):
			j = p.past(j) - 1
		}
	}
	return i + 1
}

// beforeAngles returns the token before the pair of angle brackets that closes at token i,
// or i if there is no pair.
func (p *braces) beforeAngles(i, from int) int {
	depth := 0
	for j := i; j >= max(from, i-maxAngles); j-- {
		switch {
		case p.is(j, '>'):
			depth++
		case p.is(j, '<'):
			if depth--; depth == 0 {
				return j - 1
			}
		}
	}
	return i
}

// pastAnnotations returns the first token at or after i that is not part of an annotation
// or attribute and not a line break.
func (p *braces) pastAnnotations(i, to int) int {
	for i < to {
		switch {
		case p.tokens[i].kind == newline:
			i++
		case p.is(i, '@') && p.isWord(i+1) && p.text(i+1) != "interface":
			i += 2
			for i+1 < to && (p.is(i, '.') || p.is(i, ':')) {
				i += 2
			}
			if p.is(i, '(') {
				i = p.past(i)
			}
		case p.is(i, '#') && (p.is(i+1, '[') || p.is(i+1, '!')):
			for i < to && !p.is(i, '[') {
				i++
			}
		case p.is(i, '[') && p.tokens[i].match > int32(i) && !p.lang.lists: // in JavaScript a computed name
			i = p.past(i)
		default:
			return i
		}
	}
	return i
}
