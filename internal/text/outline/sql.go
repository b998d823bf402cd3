package outline

import (
	"bytes"
	"strings"
)

// sql finds the objects that CREATE statements create.
var sql = &language{read: readSQL,
	lexis: &lexis{comments: []string{"--"}, block: true, nested: false, long: "'\"`", doubled: true, letters: "$", special: dollarQuoted}}

// sqlKinds are the kinds of objects that a statement may create.
var sqlKinds = set("table view function procedure trigger index type sequence schema database domain " +
	"event package role aggregate extension policy rule publication")

func readSQL(o *outline) {
	o.lex()
	tokens := o.tokens
	lower := func(i int) string { return strings.ToLower(o.text(i)) }
	last := -1
	end := func(at int) {
		if last >= 0 {
			o.symbols[last].End = at
		}
		last = -1
	}
	body := 0 // the number of open BEGIN and CASE
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		if o.is(i, ';') {
			if body == 0 {
				end(int(t.end))
			}
			continue
		}
		if t.kind != word {
			continue
		}
		switch lower(i) {
		case "begin", "case":
			if last >= 0 {
				body++
			}
		case "end":
			switch lower(i + 1) {
			case "if", "loop", "while", "repeat":
			default:
				body = max(body-1, 0)
			}
		case "delimiter", "go":
			if o.lineStart(int(t.start)) == int(t.start) {
				body = 0
				end(int(t.start))
			}
		case "create":
			kind, name, at := o.sqlName(i)
			if name == "" {
				continue
			}
			end(int(tokens[max(i-1, 0)].end))
			body = 0
			stop := at
			for stop < len(tokens) && stop < at+60 && !o.is(stop, ';') && !o.is(stop, '(') && lower(stop) != "as" && lower(stop) != "begin" {
				stop++
			}
			if o.is(stop, '(') && (kind == "function" || kind == "procedure") {
				if end := o.outside(stop+1, stop+maxStatement, ')'); o.is(end, ')') {
					stop = end + 1
				}
			}
			signed := signature(o.src[t.start:tokens[min(stop, len(tokens))-1].end])
			last = o.add(Symbol{Name: name, Kind: kind, Signature: signed, Start: int(t.start), Decl: int(t.start), End: int(t.end), Parent: -1})
			i = at
		}
	}
	if n := len(tokens); n > 0 {
		end(int(tokens[n-1].end))
	}
}

// sqlName returns the kind and name of the object that the CREATE at token i creates, and
// the token of its name. name is "" if there is none.
func (o *outline) sqlName(i int) (kind, name string, at int) {
	lower := func(i int) string { return strings.ToLower(o.text(i)) }
	j := i + 1
	for j < i+12 && !sqlKinds[lower(j)] && !o.is(j, ';') {
		j++
	}
	if kind = lower(j); !sqlKinds[kind] {
		return "", "", 0
	}
	j++
	for lower(j) == "if" || lower(j) == "not" || lower(j) == "exists" || lower(j) == "body" || lower(j) == "concurrently" {
		j++
	}
	for o.is(j+1, '.') && j+2 < len(o.tokens) {
		j += 2
	}
	name = strings.Trim(o.text(j), "\"`'")
	if j >= len(o.tokens) || o.tokens[j].kind == punct || name == "on" { // an index without a name
		return "", "", 0
	}
	return kind, name, j
}

// dollarQuoted reads a string between two tags such as $body$.
func dollarQuoted(x *lexer) (int, tokenKind, bool) {
	if x.src[x.i] != '$' || x.afterLetter() {
		return 0, 0, false
	}
	n := 1
	for x.i+n < len(x.src) && n < 64 && isWordByte(x.src[x.i+n]) {
		n++
	}
	if x.i+n >= len(x.src) || x.src[x.i+n] != '$' {
		return 0, 0, false
	}
	tag := x.src[x.i : x.i+n+1]
	if end := bytes.Index(x.src[x.i+n+1:], tag); end >= 0 {
		return x.i + n + 1 + end + len(tag), literal, true
	}
	return x.i + n + 1, punct, true
}
