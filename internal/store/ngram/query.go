package ngram

import (
	"encoding/binary"
	"math"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Query is a condition that every line which matches a pattern fulfils: it contains a
// literal, or all or any of several conditions hold. Literals are folded.
type Query struct {
	op      op
	literal string
	of      []*Query
}

type op uint8

const (
	always op = iota // nothing is known
	literal
	all
	any // without conditions it never holds
)

// Literal returns the condition of a pattern that is a string.
func Literal(text string) *Query {
	if !utf8.ValidString(text) {
		return &Query{}
	}
	return grams.anyOf([]string{string(fold(nil, []byte(text)))})
}

// Regexp returns the condition of a regular expression in the syntax of package regexp, and a
// Finder of the lines that fulfil it. It follows Russ Cox, "Regular Expression Matching with a Trigram Index" (2012),
// https://swtch.com/~rsc/regexp/regexp4.html: for each part of the expression it computes
// the strings with which matches begin and end. An invalid expression has no condition.
func Regexp(expr string) (*Query, *Finder) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return &Query{}, &Finder{}
	}
	re = re.Simplify()
	lines := inspector{folded: ignoresCase(re), least: 1}
	return grams.whole(grams.inspect(re)), newFinder(lines.whole(lines.inspect(re)).literals(), lines.folded)
}

// ignoresCase reports whether a part of re matches without regard to case.
func ignoresCase(re *syntax.Regexp) bool {
	return re.Op == syntax.OpLiteral && re.Flags&syntax.FoldCase != 0 || slices.ContainsFunc(re.Sub, ignoresCase)
}

// inspector describes expressions by literals of at least some bytes.
type inspector struct {
	folded bool // the literals
	least  int
}

// grams is the inspector for filters.
var grams = inspector{true, 3}

func (x inspector) text(runes ...rune) string {
	if x.folded {
		return string(fold(nil, []byte(string(runes))))
	}
	return string(runes)
}

// The bounds of the sets of strings of a part.
const (
	maxStrings = 64
	maxClass   = 16 // runes of a class that is expanded
)

// info describes the matches of a part of an expression.
type info struct {
	// Every match begins with one of first and ends with one of last. If exact is set,
	// first are all matches.
	exact       bool
	first, last []string
	query       *Query // holds for every match
}

// exactly describes a part that matches only the given strings.
func exactly(texts ...string) info {
	slices.Sort(texts)
	texts = slices.Compact(texts)
	if len(texts) > maxStrings {
		return unknown(&Query{})
	}
	return info{true, texts, texts, &Query{}}
}

// unknown describes a part of whose matches only q is known.
func unknown(q *Query) info { return info{false, []string{""}, []string{""}, q} }

// inspect describes re. Its depth is bounded by the parser.
func (x inspector) inspect(re *syntax.Regexp) info {
	switch re.Op {
	case syntax.OpNoMatch:
		return exactly()
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return exactly("")
	case syntax.OpLiteral:
		return exactly(x.text(re.Rune...))
	case syntax.OpCharClass:
		return x.class(re.Rune)
	case syntax.OpCapture:
		return x.inspect(re.Sub[0])
	case syntax.OpPlus:
		i := x.inspect(re.Sub[0])
		i.exact = false
		return i
	case syntax.OpQuest:
		if i := x.inspect(re.Sub[0]); i.exact {
			return exactly(append([]string{""}, i.first...)...)
		}
	case syntax.OpConcat:
		return x.concat(re.Sub)
	case syntax.OpAlternate:
		return x.alternate(re.Sub)
	}
	return unknown(&Query{}) // any number of repetitions, or any character
}

// class describes a class of characters, given as pairs of bounds.
func (x inspector) class(bounds []rune) info {
	var texts []string
	for i := 0; i < len(bounds); i += 2 {
		if int(bounds[i+1]-bounds[i])+len(texts) >= maxClass {
			return unknown(&Query{})
		}
		for r := bounds[i]; r <= bounds[i+1]; r++ {
			texts = append(texts, x.text(r))
		}
	}
	return exactly(texts...)
}

func (x inspector) concat(parts []*syntax.Regexp) info {
	out := exactly("") // of the parts so far
	for _, part := range parts {
		next := x.inspect(part)
		joined := cross(out.last, next.first) // at the place between both
		if joined != nil && out.exact && next.exact {
			out = exactly(joined...)
			continue
		}
		first, last, query := out.first, next.last, both(out.query, next.query)
		switch {
		case joined == nil:
			query = both(query, both(x.anyOf(out.last), x.anyOf(next.first)))
		case out.exact:
			first = joined
		case next.exact:
			last = joined
		default:
			query = both(query, x.anyOf(joined))
		}
		out = info{false, first, last, query}
	}
	return out
}

// cross returns the strings of a followed by those of b, or nil if there are too many.
func cross(a, b []string) []string {
	if len(a)*len(b) > maxStrings {
		return nil
	}
	joined := make([]string, 0, len(a)*len(b))
	for _, s := range a {
		for _, t := range b {
			joined = append(joined, s+t)
		}
	}
	return joined
}

func (x inspector) alternate(parts []*syntax.Regexp) info {
	exact, query := true, &Query{op: any}
	var first, last []string
	for _, part := range parts {
		i := x.inspect(part)
		exact = exact && i.exact
		first, last = append(first, i.first...), append(last, i.last...)
		query.of = append(query.of, x.whole(i))
	}
	if slices.ContainsFunc(query.of, func(q *Query) bool { return q.op == always }) {
		query = &Query{}
	}
	switch {
	case len(first) > maxStrings || len(last) > maxStrings:
		return unknown(query)
	case exact:
		return exactly(first...)
	}
	return info{false, first, last, query}
}

// whole returns all that is known of the matches.
func (x inspector) whole(i info) *Query {
	return both(i.query, both(x.anyOf(i.first), x.anyOf(i.last)))
}

// anyOf returns the condition that a line contains one of the texts.
func (x inspector) anyOf(texts []string) *Query {
	q := &Query{op: any}
	for _, t := range texts {
		if len(t) < x.least {
			return &Query{}
		}
		q.of = append(q.of, &Query{op: literal, literal: t})
	}
	if len(q.of) == 1 {
		return q.of[0]
	}
	return q
}

func both(a, b *Query) *Query {
	switch {
	case a.op == always:
		return b
	case b.op == always:
		return a
	}
	return &Query{op: all, of: []*Query{a, b}}
}

// maxLiterals bounds the literals of a Finder.
const maxLiterals = 16

// literals returns literals of which a line must contain one, those that occur least often
// if there is a choice. It returns nil if there is no such condition.
func (q *Query) literals() []string {
	switch q.op {
	case literal:
		return []string{q.literal}
	case all:
		var best []string
		for _, sub := range q.of {
			if l := sub.literals(); l != nil && (best == nil || rarer(l, best)) {
				best = l
			}
		}
		return best
	case any:
		list := []string{}
		for _, sub := range q.of {
			l := sub.literals()
			if l == nil || len(list)+len(l) > maxLiterals {
				return nil
			}
			list = append(list, l...)
		}
		return list
	}
	return nil
}

// rarer guesses which literals occur less often: fewer and longer ones, of rare bytes.
func rarer(a, b []string) bool {
	least := func(l []string) int {
		least := math.MaxInt
		for _, text := range l {
			sum := 0
			for i := range len(text) {
				sum += 8 + rarity(text[i])
			}
			least = min(least, sum)
		}
		return least
	}
	if len(a) == 0 || len(b) == 0 {
		return len(a) < len(b)
	}
	return least(a)*len(b) > least(b)*len(a)
}

// fold appends text to dst with each letter replaced by one that stands for all letters
// which (?i) treats as equal. It keeps line breaks.
func fold(dst, text []byte) []byte {
	const each = 0x0101010101010101 // one in each byte
	for i := 0; i < len(text); {
		if i+8 <= len(text) {
			if word := binary.LittleEndian.Uint64(text[i:]); word&(0x80*each) == 0 { // eight characters of ASCII
				upper := (word + (0x80-'A')*each) &^ (word + (0x80-'Z'-1)*each) & (0x80 * each)
				dst = binary.LittleEndian.AppendUint64(dst, word|upper>>2)
				i += 8
				continue
			}
		}
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError {
			dst = append(dst, text[i:i+n]...)
		} else {
			dst = utf8.AppendRune(dst, foldRune(r))
		}
		i += n
	}
	return dst
}

// foldRune returns the letter that stands for those equal to r: the one of ASCII in lower
// case if there is one, such as k for the sign of Kelvin, and otherwise the smallest.
func foldRune(r rune) rune {
	if '⺀' <= r && r <= '鿿' {
		return r // ideographs have no case
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if 'A' <= least && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}
