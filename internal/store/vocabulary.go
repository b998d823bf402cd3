package store

import (
	"unicode"
	"unicode/utf8"
)

// Vocabulary estimates the number of terms of texts in a keyword index, without
// analysing them. The zero value is empty.
type Vocabulary struct {
	// Words counts all words, Distinct the distinct ones. A character of a script
	// without spaces counts as two words, since it is indexed alone and in pairs.
	Words, Distinct int

	seen []uint64 // a bit for each hash of a word
}

// seenBits is the logarithm of the number of bits in Vocabulary.seen, four million. With
// half a million distinct words, Distinct is about 6 % too low.
const seenBits = 22

// firstCJK is the first code point of the scripts that write words without spaces.
const firstCJK = 0x2e80

// Add counts the words of a text.
func (v *Vocabulary) Add(text string) {
	if v.seen == nil {
		v.seen = make([]uint64, 1<<(seenBits-6))
	}
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h, before := uint64(offset), uint64(0)
	end := func() {
		if h != offset {
			v.count(h)
		}
		h = offset
	}
	for _, r := range text {
		switch {
		case r >= firstCJK && unicode.IsLetter(r):
			end()
			one := (offset ^ uint64(r)) * prime
			v.count(one)
			v.count((one ^ before) * prime)
			before = one
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			if r < utf8.RuneSelf {
				r |= 0x20 // lower case
			}
			h = (h ^ uint64(r)) * prime
		default:
			end()
			before = 0
		}
	}
	end()
}

func (v *Vocabulary) count(h uint64) {
	v.Words++
	h ^= h >> 32
	at := h & (1<<seenBits - 1)
	if bit := uint64(1) << (at % 64); v.seen[at/64]&bit == 0 {
		v.seen[at/64] |= bit
		v.Distinct++
	}
}

// Reset empties v.
func (v *Vocabulary) Reset() {
	clear(v.seen)
	v.Words, v.Distinct = 0, 0
}
