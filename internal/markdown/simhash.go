package markdown

import (
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// Fingerprint is a 64-bit simhash (Charikar, "Similarity estimation techniques
// from rounding algorithms", STOC 2002) over the text's lower-cased words in
// shingles of three, each shingle with weight 1. Near-duplicates differ in few bits:
// Manku, Jain and Das Sarma (WWW 2007) found 3 of 64 to suit web pages.
// Markup does not count, since only letters and digits make words; a character
// of a script written without blanks is a word. Text without a word gives 0, of one or
// two words the hash of these.
func Fingerprint(text []byte) uint64 {
	var votes ballot
	var w1, w2 uint64 // the two words before
	words := 0
	add := func(h uint64) {
		words++
		if words >= 3 {
			votes.add(mix(w1 ^ bits.RotateLeft64(w2, 21) ^ bits.RotateLeft64(h, 42)))
		}
		w1, w2 = w2, h
	}
	h := uint64(fnvOffset)
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
				h = (h ^ uint64(c)) * fnvPrime
			case 'A' <= c && c <= 'Z':
				h = (h ^ uint64(c+'a'-'A')) * fnvPrime
			case h != fnvOffset:
				add(mix(h))
				h = fnvOffset
			}
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		i += n
		switch {
		case r == utf8.RuneError || !isWord(r):
			if h != fnvOffset {
				add(mix(h))
				h = fnvOffset
			}
		case isIdeograph(r):
			if h != fnvOffset {
				add(mix(h))
			}
			add(mix((fnvOffset ^ uint64(r)) * fnvPrime))
			h = fnvOffset
		default:
			h = (h ^ uint64(unicode.ToLower(r))) * fnvPrime
		}
	}
	if h != fnvOffset {
		add(mix(h))
	}
	switch words {
	case 0:
		return 0
	case 1, 2:
		return mix(w1 ^ bits.RotateLeft64(w2, 21))
	}
	return votes.majority()
}

// The 64-bit FNV-1a parameters (Fowler, Noll, Vo).
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014): FNV's high bits
// depend too little on the last letters to vote with.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

func isIdeograph(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// ballot counts, for each of 64 bit positions, how many words had it set. The
// counters are bit-sliced: plane k holds bit k of all 64, so adding a word is a ripple
// of two operations a plane instead of 64 additions.
type ballot struct {
	planes [32]uint64
	n      uint64
}

func (b *ballot) add(h uint64) {
	b.n++
	for k := 0; h != 0 && k < len(b.planes); k++ {
		b.planes[k], h = b.planes[k]^h, b.planes[k]&h
	}
}

// majority sets the bits that more than half of the words had set.
func (b *ballot) majority() uint64 {
	var out uint64
	planes := b.planes[:min(bits.Len64(b.n), len(b.planes))] // no count exceeds n
	for bit := range 64 {
		var count uint64
		for k, p := range planes {
			count |= p >> bit & 1 << k
		}
		if 2*count > b.n {
			out |= 1 << bit
		}
	}
	return out
}
