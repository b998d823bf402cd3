package outline

import (
	"slices"
	"strings"
)

// scriptControl are words before parentheses that are not method names.
var scriptControl = []string{"if", "for", "while", "switch", "catch", "with", "return", "function", "await", "super", "import", "new", "typeof"}

// byAssignment classifies statements of JavaScript and TypeScript, in which functions are
// also values of variables, properties and members.
func byAssignment(p *braces, from, to int, body bool) declaration {
	for from < to && p.tokens[from].kind == newline {
		from++
	}
	start := p.pastAnnotations(from, to)
	d := declaration{first: from, keyword: min(start, max(to-1, 0)), inner: block}
	limit := min(to, start+maxStatement)
	k := start
	for k < limit && p.isWord(k) && p.lang.keywords[p.text(k)] == aModifier && (p.isWord(k+1) || p.is(k+1, '[') || p.is(k+1, '*') || p.is(k+1, '#') || p.is(k+1, '{')) {
		k++
	}
	if body && p.scriptObject(to) {
		d.inner, d.goesOn = object, true
	}
	if p.is(k, '*') || p.is(k, '#') {
		k++
	}
	if k >= limit {
		return d
	}
	text := p.text(k)
	up := p.top().kind
	switch r := p.lang.keywords[text]; {
	case r == aType && text != "type" && d.goesOn: // interface A extends B<{
		return d
	case r == aType && up != object && p.isWord(k+1) && p.scriptDeclares(text, k, limit, body):
		d.Kind, d.Name, d.inner = text, p.text(k+1), typ
		if text == "type" {
			d.inner, d.goesOn, d.until = typ, true, max(p.scriptAssigned(k+2, limit)-1, 0)
		}
		return d
	case text == "class" && body: // class {
		d.inner = typ
		return d
	case r == aSpace && body && (p.isWord(k+1) || p.tokens[min(k+1, len(p.tokens)-1)].kind == literal):
		d.Kind, d.Name, d.inner = text, trimQuotes(p.text(k+1)), file
		for p.is(k+2, '.') && p.isWord(k+3) {
			k += 2
			d.Name = p.text(k + 1)
		}
		return d
	case text == "function":
		if p.is(k+1, '*') {
			k++
		}
		if (body || up == file) && !d.goesOn { // else the brace opens the type of the result
			d.inner, d.Kind, d.Name = fun, "function", p.wordAt(k+1)
		}
		return d
	case r == aValue && p.isWord(k+1):
		return p.scriptValue(d, k+1, limit, body, text)
	}
	return p.scriptMember(d, k, limit, body)
}

// scriptDeclares reports whether the keyword of a type at token k begins a declaration. An
// identifier can be the same word.
func (p *braces) scriptDeclares(text string, k, to int, body bool) bool {
	if text != "type" {
		return body
	}
	for j := k + 2; j < to; j++ {
		if p.is(j, '<') {
			j = p.pastAngles(j, to) - 1
			continue
		}
		return p.is(j, '=')
	}
	return false
}

// scriptObject reports whether the brace at token to begins an object literal.
func (p *braces) scriptObject(to int) bool {
	for to > 0 && p.tokens[to-1].kind == newline {
		to--
	}
	if p.isWord(to - 1) {
		return p.text(to-1) == "return" || p.text(to-1) == "default"
	}
	return p.is(to-1, '=') || p.is(to-1, '(') || p.is(to-1, ',') || p.is(to-1, ':') || p.is(to-1, '[') || p.is(to-1, '?') ||
		p.is(to-1, '|') || p.is(to-1, '&') || p.is(to-1, '<')
}

// scriptValue classifies the declaration of a variable whose name is token n.
func (p *braces) scriptValue(d declaration, n, to int, body bool, kind string) declaration {
	value := p.scriptAssigned(n+1, to)
	if value > 0 && p.scriptAssigns(&d, "function", p.text(n), value, to, body) {
		return d
	}
	if p.top().kind != file || body && (value == 0 || p.scriptObject(to) && to > value) && to != value {
		return d
	}
	d.Kind, d.Name, d.until = kind, p.text(n), max(value-1, 0)
	if d.goesOn = body; body && p.text(value) == "class" {
		d.inner = typ
	}
	return d
}

// scriptAssigned returns the first token of the value that is assigned, 0 for none.
func (p *braces) scriptAssigned(j, to int) int {
	for ; j < to; j++ {
		switch {
		case p.opens(j):
			j = p.past(j) - 1
		case p.is(j, '=') && !p.is(j+1, '='):
			return p.pastLines(j + 1)
		}
	}
	return 0
}

// scriptArrow returns the arrow of the function that begins at token v, 0 for none.
func (p *braces) scriptArrow(v, to int) int {
	for ; v < to; v++ {
		switch {
		case p.tokens[v].kind == arrow:
			return v
		case p.opens(v):
			v = p.past(v) - 1
		}
	}
	return 0
}

// scriptFunction reports whether the value that begins at token v is a function.
func (p *braces) scriptFunction(v, to int, body bool) bool {
	if p.text(v) == "async" {
		v++
	}
	if p.isWord(v) && p.text(v) == "function" {
		return !body || !p.is(to-1, '(')
	}
	j := v
	if p.is(j, '<') {
		j = p.pastAngles(j, to)
	}
	switch {
	case p.is(j, '('):
		j = p.past(j)
	case p.isWord(j):
		j++
	default:
		return false
	}
	if p.is(j, ':') { // the type of the result
		for j < to && p.tokens[j].kind != arrow && p.tokens[j].kind != newline {
			if p.is(j, '<') {
				j = p.pastAngles(j, to)
			} else if j++; p.opens(j - 1) {
				j = p.past(j - 1)
			}
		}
	}
	return j < to && p.tokens[j].kind == arrow
}

// scriptAssigns reports whether the value that begins at token v is a function. If so, it
// makes d the declaration of name, to which the function is assigned.
func (p *braces) scriptAssigns(d *declaration, kind, name string, v, to int, body bool) bool {
	if !p.scriptFunction(v, to, body) {
		return false
	}
	d.Kind, d.Name, d.inner, d.goesOn, d.until = kind, name, fun, true, p.scriptArrow(v, to)
	if p.text(v) == "async" {
		v++
	}
	if own := p.wordAt(v + 1); p.text(v) == "function" && own != "" && own != name {
		d.Names = append(d.Names, own)
	}
	return true
}

// isName reports whether s is an identifier.
func isName(s string) bool {
	return s != "" && isLetter(s[0]) && strings.IndexFunc(s, func(r rune) bool { return r < 0x80 && !isWordByte(byte(r)) }) < 0
}

// scriptMember classifies a method, property or assignment that begins at token k.
func (p *braces) scriptMember(d declaration, k, to int, body bool) declaration {
	up := p.top().kind
	inside := up == typ || up == object
	named := p.isWord(k) || p.tokens[k].kind == literal
	if !named && !(p.is(k, '[') && inside) {
		return d
	}
	next := k + 1
	if p.is(k, '[') {
		next = min(p.past(k), to)
	}
	name := trimQuotes(string(p.src[p.tokens[k].start:p.tokens[next-1].end]))
	if inside {
		if p.is(next, '?') {
			next++
		}
		j := next
		if p.is(j, '<') {
			j = p.pastAngles(j, to)
		}
		if p.is(j, '(') && !slices.Contains(scriptControl, name) { // name(...) { or, in an interface, name(...): T;
			if body && (p.past(j) == to || p.is(p.past(j), ':')) && (!p.scriptObject(to)) || !body && up == typ && p.past(j) > j+1 {
				d.Kind, d.Name, d.inner, d.goesOn = "method", name, fun, false
			}
			return d
		}
		if p.is(next, ':') && up == object || p.is(next, '=') || p.is(next, ':') && up == typ {
			value := p.pastLines(next + 1)
			if up == typ && p.is(next, ':') {
				value = p.scriptAssigned(next, to)
			}
			if value > 0 && value < to {
				p.scriptAssigns(&d, "method", name, value, to, body)
			}
		}
		return d
	}
	// a.b.c = function, a.b["c"] = function; a.b[c] = function is one of b.
	j := k
	for j+2 < to {
		n := j + 2
		if p.is(n, '#') {
			n++
		}
		if p.is(j+1, '.') && p.isWord(n) {
			if p.isWord(j) && p.text(j) != "prototype" && p.text(j) != "exports" && p.text(j) != "module" {
				d.Scope = p.text(j)
			}
			j, name = n, p.text(n)
			continue
		}
		if !p.is(j+1, '[') && !p.is(j+1, '(') || p.past(j+1) > to {
			break
		}
		end := p.past(j+1) - 1
		if p.is(j+1, '[') && end == j+3 && p.tokens[j+2].kind == literal && isName(trimQuotes(p.text(j+2))) {
			d.Scope, name = name, trimQuotes(p.text(j+2))
		} else if name == "this" { // this[key] = function
			name = string(p.src[p.tokens[j+1].start:p.tokens[end].end])
		}
		j = end
	}
	if value := p.pastLines(j + 2); p.is(j+1, '=') && !p.is(j+2, '=') && value < to {
		if p.scriptAssigns(&d, "function", name, value, to, body) {
			return d
		}
		if body && p.text(value) == "class" { // module.exports = class C extends B {
			if own := p.wordAt(value + 1); own != "" && own != "extends" {
				name = own
			}
			d.Kind, d.Name, d.inner, d.goesOn = "class", name, typ, true
			return d
		}
	}
	d.Scope = ""
	// A function within a statement: f(function g() {, return function g() {, x => {
	if body {
		return p.scriptInner(d, k, to)
	}
	return d
}

// scriptInner classifies a function that begins within a statement.
func (p *braces) scriptInner(d declaration, from, to int) declaration {
	if p.tokens[to-1].kind == arrow {
		d.inner, d.goesOn = fun, true
		return d
	}
	j := int(p.tokens[to-1].match) - 1
	switch {
	case j >= from && p.isWord(j) && p.text(j) == "function", p.is(j, '*') && p.text(j-1) == "function":
		d.inner, d.goesOn = fun, true
	case j > from && p.isWord(j) && p.text(j-1) == "function":
		d.Kind, d.Name, d.inner, d.goesOn, d.first, d.keyword = "function", p.text(j), fun, true, j-1, j-1
	}
	return d
}

func trimQuotes(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'' || s[0] == '`') {
		return s[1 : len(s)-1]
	}
	return s
}
