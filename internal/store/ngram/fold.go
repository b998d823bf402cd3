package ngram

import (
	"encoding/binary"
	"unicode"
	"unicode/utf8"
)

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
