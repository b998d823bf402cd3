package markdown

import (
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// Fingerprint returns a 64-bit simhash (Charikar, "Similarity estimation techniques
// from rounding algorithms", STOC 2002) of the text: each shingle of three lower-cased
// words has equal weight. Near-duplicates differ in few bits: Manku, Jain and Das Sarma
// (WWW 2007) used 3 of 64 for web pages. Words consist of letters and digits, so markup
// does not count. In a script without blanks each character is a word. The fingerprint
// of a text without words is 0, that of one or two words is their hash.
func Fingerprint(text []byte) uint64 {
	var counts bitCounts
	var w1, w2 uint64 // the hashes of the two previous words
	words := 0
	add := func(h uint64) {
		words++
		if words >= 3 {
			counts.add(mix(w1 ^ bits.RotateLeft64(w2, 21) ^ bits.RotateLeft64(h, 42)))
		}
		w1, w2 = w2, h
	}
	h := uint64(fnvOffset)
	end := func() {
		if h != fnvOffset {
			add(mix(h))
			h = fnvOffset
		}
	}
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
				h = (h ^ uint64(c)) * fnvPrime
			case 'A' <= c && c <= 'Z':
				h = (h ^ uint64(c+'a'-'A')) * fnvPrime
			default:
				end()
			}
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		i += n
		switch {
		case !isWord(r):
			end()
		case isIdeograph(r):
			end()
			add(mix((fnvOffset ^ uint64(r)) * fnvPrime))
		default:
			h = (h ^ uint64(unicode.ToLower(r))) * fnvPrime
		}
	}
	end()
	if words < 3 {
		return mix(w1 ^ bits.RotateLeft64(w2, 21))
	}
	return counts.majority()
}

// The 64-bit FNV-1a parameters (Fowler, Noll, Vo).
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014). The high bits of FNV
// depend too little on the last letters.
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

// bitCounts counts for each of 64 bit positions the hashes in which it is set. The
// counters are bit-sliced: plane k holds bit k of all 64 counters, so adding a hash
// takes two operations per plane instead of 64 additions.
type bitCounts struct {
	planes [32]uint64
	n      uint64
}

func (b *bitCounts) add(h uint64) {
	b.n++
	for k := 0; h != 0 && k < len(b.planes); k++ {
		b.planes[k], h = b.planes[k]^h, b.planes[k]&h
	}
}

// majority returns the bits that are set in more than half of the hashes.
func (b *bitCounts) majority() uint64 {
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
