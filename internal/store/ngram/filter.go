package ngram

import (
	"slices"
	"unicode/utf8"
)

// A filter is a Bloom filter of the trigrams of a text in blocks of the size of a cache line:
// Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (2007). With
// bitsEach bits and hashes hashes for each trigram, one that does not occur is taken for one
// that does in about 1 of 20 tests.
const (
	bitsEach  = 7
	hashes    = 4
	blockSize = 64 // bytes
)

// places calls fn with the bits of a trigram in a filter of n bytes until it returns false.
func places(trigram uint32, n int, fn func(at uint64) bool) bool {
	h := (uint64(trigram) + 1) * 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	block := h >> 32 * uint64(n/blockSize) >> 32
	h *= 0xD6E8FEB86659FD93
	for range hashes {
		if !fn(block*8*blockSize + h>>(64-9)) { // 9 bits choose one of the 512
			return false
		}
		h <<= 9
	}
	return true
}

// Filter is the filter of a file; "" is that of an unknown one, which can have any line.
type Filter string

// NotText is the Filter of a file that is not text, and has no lines.
const NotText Filter = "\x00"

// Maker makes filters. The zero Maker is ready to use.
type Maker struct {
	seen   []uint64 // a bit for each trigram
	list   []uint32
	folded []byte
}

// Filter returns the filter of a text.
func (m *Maker) Filter(text []byte) Filter {
	trigrams := m.trigrams(text)
	filter := make([]byte, (len(trigrams)*bitsEach/8/blockSize+1)*blockSize)
	for _, g := range trigrams {
		places(g, len(filter), func(at uint64) bool { filter[at>>3] |= 1 << (at & 7); return true })
	}
	return Filter(filter)
}

// pieceSize is the size in bytes of the pieces of a text that are folded, so that a large
// text has no folded copy.
const pieceSize = 32 << 10

// trigrams returns the different trigrams of the lines of a text, valid until the next call.
// A trigram is three bytes of a folded line as a number.
func (m *Maker) trigrams(text []byte) []uint32 {
	if m.seen == nil {
		m.seen = make([]uint64, 1<<24/64)
	}
	for _, g := range m.list {
		m.seen[g>>6] = 0
	}
	m.list = m.list[:0]
	g, n := uint32(0), 0 // n is the number of bytes of the line before this one
	for len(text) > 0 {
		size := min(len(text), pieceSize)
		for most := min(len(text), size+utf8.UTFMax-1); size < most && !utf8.RuneStart(text[size]); {
			size++
		}
		m.folded = fold(m.folded[:0], text[:size])
		text = text[size:]
		for _, c := range m.folded {
			if c == '\n' {
				n = 0
				continue
			}
			g = g<<8&0xffffff | uint32(c)
			if n++; n < 3 {
				continue
			}
			if word, bit := &m.seen[g>>6], uint64(1)<<(g&63); *word&bit == 0 {
				*word |= bit
				m.list = append(m.list, g)
			}
		}
	}
	return m.list
}

// Match reports whether a file can have a line that fulfils q.
func (q *Query) Match(f Filter) bool { return f == "" || f != NotText && q.match(f) }

func (q *Query) match(f Filter) bool {
	switch q.op {
	case literal:
		for i := 0; i+3 <= len(q.literal); i++ {
			g := uint32(q.literal[i])<<16 | uint32(q.literal[i+1])<<8 | uint32(q.literal[i+2])
			if !places(g, len(f), func(at uint64) bool { return f[at>>3]>>(at&7)&1 == 1 }) {
				return false
			}
		}
	case all:
		return !slices.ContainsFunc(q.of, func(sub *Query) bool { return !sub.match(f) })
	case any:
		return slices.ContainsFunc(q.of, func(sub *Query) bool { return sub.match(f) })
	}
	return true
}
