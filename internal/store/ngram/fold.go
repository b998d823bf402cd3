package ngram

import (
	"unicode"
	"unicode/utf8"
)

// fold appends text to dst with each letter replaced by one that stands for all letters
// which (?i) treats as equal. It keeps line breaks.
func fold(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
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

// trigrams collects the different trigrams of texts. A trigram is three bytes of a folded
// line as a number.
type trigrams struct {
	seen   []uint64 // a bit for each trigram
	list   []uint32
	folded []byte
}

// of returns the trigrams of a text in the order of their first occurrence, valid until the
// next call.
func (t *trigrams) of(text []byte) []uint32 {
	if t.seen == nil {
		t.seen = make([]uint64, 1<<24/64)
	}
	for _, g := range t.list {
		t.seen[g>>6] = 0
	}
	t.list, t.folded = t.list[:0], fold(t.folded[:0], text)
	g, n := uint32(0), 0 // n is the number of bytes of the line before this one
	for _, c := range t.folded {
		if c == '\n' {
			n = 0
			continue
		}
		g = g<<8&0xffffff | uint32(c)
		if n++; n < 3 {
			continue
		}
		if word, bit := &t.seen[g>>6], uint64(1)<<(g&63); *word&bit == 0 {
			*word |= bit
			t.list = append(t.list, g)
		}
	}
	return t.list
}

// trigramsOf returns the trigrams of a folded literal.
func trigramsOf(literal string) []uint32 {
	var list []uint32
	for i := 0; i+3 <= len(literal); i++ {
		list = append(list, uint32(literal[i])<<16|uint32(literal[i+1])<<8|uint32(literal[i+2]))
	}
	return list
}
