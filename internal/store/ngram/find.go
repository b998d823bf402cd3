package ngram

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Finder finds the lines that can match a pattern by literals, one of which each has. The zero
// Finder knows no literals.
type Finder struct {
	literals []needle
	folded   bool // the literals
}

// needle is a literal that is found by one of its bytes.
type needle struct {
	text   string
	at     int    // of the byte in text, -1 if none is suitable
	either string // the byte, and its other case if the literals are folded
}

func newFinder(literals []string, folded bool) *Finder {
	f := &Finder{folded: folded}
	for _, text := range literals {
		n := needle{text: text, at: -1}
		for i := range len(text) {
			if c := text[i]; (!folded || foldsAlone(c)) && (n.at < 0 || rarity(c) > rarity(text[n.at])) {
				n.at = i
			}
		}
		if n.at >= 0 {
			n.either = text[n.at : n.at+1]
		}
		if upper := strings.ToUpper(n.either); folded && upper != n.either {
			n.either += upper
		}
		f.literals = append(f.literals, n)
	}
	return f
}

// foldsAlone reports whether a byte of a folded text stands only for itself and, if it is a
// letter, its other case. The sign of Kelvin is a k, and the long s an s.
func foldsAlone(c byte) bool { return c < 0x80 && c != 'k' && c != 's' }

// rarity returns how rare a byte is in documents and source code. Those of ASCII are in their
// order in 120 MB of both.
func rarity(c byte) int {
	const often = " etsaionrlc\ndp/uhmf.\tbg\",>_<()y0=:-vx12wST*EkA3IC4'R6NO[]{}jL58PD`97FM#;UB\\GHVqzW&+!|YK%XJ$@QZ?~"
	if i := strings.IndexByte(often, c); i >= 0 {
		return i
	}
	return len(often)
}

// Lines calls fn with the number, from 1, and the start of each line of text that has a literal,
// until fn returns false. If f knows no literals, it reports false and does not call fn.
func (f *Finder) Lines(text []byte, fn func(number, start int) bool) bool {
	found := make([]occurrence, len(f.literals))
	for number, start := 1, 0; start < len(text) && len(found) > 0; number++ {
		first := len(text)
		for i := range found {
			if o := &found[i]; o.at < start || start == 0 {
				o.find(&f.literals[i], text, start, f.folded)
			}
			first = min(first, found[i].at)
		}
		if first == len(text) {
			break
		}
		number += bytes.Count(text[start:first], lineBreak)
		if !fn(number, start+bytes.LastIndexByte(text[start:first], '\n')+1) {
			break
		}
		start = lineEnd(text, first) + 1
	}
	return f.literals != nil
}

var lineBreak = []byte("\n")

// lineEnd returns the end of the line that has a place.
func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

// occurrence is a place in a line with a literal, the length of the text if there is none.
type occurrence struct {
	at     int
	either [2]int // the places of the byte in either case, from which the next one is found
}

// find sets o to the first occurrence in the lines from a start on.
func (o *occurrence) find(n *needle, text []byte, start int, folded bool) {
	for o.at = start; ; o.at++ {
		from := o.at
		if o.at = len(text); from >= len(text) {
			return
		}
		for i := range len(n.either) {
			if next := &o.either[i]; *next < from || from == 0 {
				if *next = bytes.IndexByte(text[from:], n.either[i]) + from; *next < from {
					*next = len(text)
				}
			}
			o.at = min(o.at, o.either[i])
		}
		if n.at < 0 {
			o.at = from
		}
		if o.at == len(text) {
			return
		}
		is, other := n.is(text, o.at, folded)
		if is {
			return
		}
		if other {
			end := lineEnd(text, o.at)
			line := text[bytes.LastIndexByte(text[:o.at], '\n')+1 : end]
			if bytes.Contains(fold(nil, line), []byte(n.text)) {
				return
			}
			o.at = end
		}
	}
}

// is reports whether the literal is around the place of its byte, and other whether it may be
// there with other letters than those of ASCII.
func (n *needle) is(text []byte, at int, folded bool) (is, other bool) {
	first := at - n.at
	if !folded {
		return first >= 0 && len(text)-first >= len(n.text) && string(text[first:first+len(n.text)]) == n.text, false
	}
	if n.at < 0 {
		return false, true
	}
	for d := 1; d < len(n.text); d++ { // after the byte, and then before it
		i := n.at + d
		if i >= len(n.text) {
			i = len(n.text) - 1 - d
		}
		if first+i < 0 || first+i >= len(text) {
			return false, false
		}
		if c := lower(text[first+i]); c != n.text[i] {
			return false, c >= utf8.RuneSelf
		}
	}
	return true, false
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
