// Package ngram makes a filter of the n-grams in the lines of a file, so that a search for a
// string or a regular expression reads only the files that can match. It decides nothing
// else: the caller reads every candidate and looks for the pattern.
package ngram

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
)

// A filter is a Bloom filter of the grams of a part of a text in blocks of the size of a cache
// line: Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters" (2007).
// With bitsEach bits and hashes hashes for each gram, one that does not occur is taken for one
// that does in about 1 of 10 tests.
//
// A gram is three bytes of a folded line and 3 bits of the next byte, or of the line break. Of
// each of the three it has the class.
const (
	bitsEach  = 5
	hashes    = 3
	blockSize = 64 // bytes
)

// gramBits is the size of a gram in bits, classBits that of the class of a byte, and nextBits
// that of what a gram has of the next byte.
const (
	gramBits  = 3*classBits + nextBits
	classBits = 6
	nextBits  = 3
)

// classes are the classes of bytes: letters and digits have their own.
var classes = func() (of [256]byte) {
	for c := range of {
		switch {
		case 'a' <= c && c <= 'z':
			of[c] = byte(c - 'a')
		case '0' <= c && c <= '9':
			of[c] = byte(26 + c - '0')
		case c < 0x80:
			of[c] = byte(36 + c%28)
		default:
			of[c] = byte(c & 63) // all of a byte that continues a letter
		}
	}
	return of
}()

// gram adds a byte to the classes of those before it.
func gram(before uint32, c byte) uint32 {
	return (before<<classBits | uint32(classes[c])) & (1<<(3*classBits) - 1)
}

// withNext returns the gram of three classes before a byte.
func withNext(three uint32, c byte) uint32 {
	return three<<nextBits | uint32(classes[c])&(1<<nextBits-1)
}

// places calls fn with the bits of a gram in a filter of n bytes until it returns false.
func places(g uint32, n int, fn func(at uint64) bool) bool {
	h := (uint64(g) + 1) * 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
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

// Filter is the filter of a file; "" is that of an unknown one, which can have any line. It
// consists of filters of equal size, one for each part of the text, and a trailer. The trailer
// has the end of each part and the number of lines before its end, in four bytes each, and the
// number of parts in two. Its last byte is 1 if the text is the file itself, 0 if it was decoded
// or secrets were masked.
type Filter string

const (
	trailerSize = 3
	entrySize   = 8 // of a part in the trailer
)

// Part is a range of bytes of a file, which begins after Line lines.
type Part struct{ Start, End, Line int }

// NotText is the Filter of a file that is not text, and has no lines.
const NotText Filter = "\x00"

const (
	// partSize is the size in bytes from which a part ends with the next line. The grams of
	// a large file are so many that it could have nearly any line.
	partSize = 32 << 10
	// maxParts is the maximum number of parts. Those of a larger file are larger.
	maxParts = 1<<16 - 1
)

// part returns the first part of a text and the rest.
func part(text []byte, size int) (first, rest []byte) {
	if len(text) < 2*size {
		return text, nil
	}
	end := bytes.IndexByte(text[size:], '\n')
	if end < 0 {
		return text, nil
	}
	return text[:size+end+1], text[size+end+1:]
}

// Maker makes filters. The zero Maker is ready to use.
type Maker struct {
	seen   []uint64 // a bit for each gram
	list   []uint32
	folded []byte
}

// Filter returns the filter of a text; changed tells whether it differs from the file.
func (m *Maker) Filter(text []byte, changed bool) Filter {
	var parts [][]uint32 // grams
	var trailer []byte
	most, size, end, lines := 0, max(partSize, len(text)/maxParts), 0, 0
	for more := true; more; more = len(text) > 0 {
		var first []byte
		first, text = part(text, size)
		list := slices.Clone(m.grams(first))
		parts, most = append(parts, list), max(most, len(list))
		end, lines = end+len(first), lines+bytes.Count(first, []byte("\n"))
		trailer = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(trailer, uint32(end)), uint32(lines))
	}
	n := (most*bitsEach/8/blockSize + 1) * blockSize
	filter := make([]byte, n*len(parts), n*len(parts)+len(trailer)+trailerSize)
	for i, list := range parts {
		part := filter[i*n:][:n]
		for _, g := range list {
			places(g, n, func(at uint64) bool { part[at>>3] |= 1 << (at & 7); return true })
		}
	}
	filter = binary.LittleEndian.AppendUint16(append(filter, trailer...), uint16(len(parts)))
	if changed {
		return Filter(append(filter, 0))
	}
	return Filter(append(filter, 1))
}

// Verbatim reports whether the text is the file itself.
func (f Filter) Verbatim() bool { return len(f) > trailerSize && f[len(f)-1] == 1 }

// pieceSize is the size in bytes of the pieces of a text that are folded, so that a large
// text has no folded copy.
const pieceSize = 32 << 10

// grams returns the different grams of the lines of a text, valid until the next call.
func (m *Maker) grams(text []byte) []uint32 {
	if m.seen == nil {
		m.seen = make([]uint64, 1<<gramBits/64)
	}
	for _, g := range m.list {
		m.seen[g>>6] = 0
	}
	m.list = m.list[:0]
	three, n := uint32(0), 0 // n is the number of bytes of the line before this one
	add := func(c byte) {
		if n >= 3 {
			g := withNext(three, c)
			if word, bit := &m.seen[g>>6], uint64(1)<<(g&63); *word&bit == 0 {
				*word |= bit
				m.list = append(m.list, g)
			}
		}
	}
	for len(text) > 0 {
		size := min(len(text), pieceSize)
		for most := min(len(text), size+utf8.UTFMax-1); size < most && !utf8.RuneStart(text[size]); {
			size++
		}
		m.folded = fold(m.folded[:0], text[:size])
		text = text[size:]
		for _, c := range m.folded {
			if add(c); c == '\n' {
				n = 0
				continue
			}
			three, n = gram(three, c), n+1
		}
	}
	add('\n')
	return m.list
}

// divide returns the filters of the parts of f, one after the other, and the size of each.
// It returns no parts, of size 1, for an unknown or damaged filter.
func (f Filter) divide() (parts Filter, size int) {
	at := len(f) - trailerSize
	if at <= 0 {
		return "", 1
	}
	n := int(f[at]) | int(f[at+1])<<8
	if at -= n * entrySize; n == 0 || at <= 0 || at%(n*blockSize) != 0 {
		return "", 1
	}
	return f[:at], at / n
}

// Match reports whether a file can have a line that fulfils q.
func (q *Query) Match(f Filter) bool {
	if f == NotText {
		return false
	}
	parts, size := f.divide()
	for rest := parts; rest != ""; rest = rest[size:] {
		if q.match(rest[:size]) {
			return true
		}
	}
	return parts == ""
}

// Parts returns the parts of a file that can have a line that fulfils q, if they are not all.
func (q *Query) Parts(f Filter) []Part {
	parts, size := f.divide()
	return f.parts(len(parts)/size, func(n int) bool { return q.match(parts[n*size:][:size]) })
}

// parts returns the parts of f, which are n, that match accepts, if they are not all.
func (f Filter) parts(n int, match func(n int) bool) (list []Part) {
	if n < 2 {
		return nil
	}
	entries, p := f.trailer(n), Part{}
	for i := range n {
		number := func(at int) int { return int(binary.LittleEndian.Uint32([]byte(entries[i*entrySize+at:][:4]))) }
		if p.Start, p.End = p.End, number(0); p.End < p.Start {
			return nil
		}
		if match(i) {
			list = append(list, p)
		}
		p.Line = number(4)
	}
	if len(list) == n {
		return nil
	}
	return list
}

// trailer returns the end of f, which has n parts.
func (f Filter) trailer(n int) Filter { return f[len(f)-trailerSize-n*entrySize:] }

// Trailer returns a copy of what Verbatim and Matches.Parts read of f.
func (f Filter) Trailer() Filter {
	parts, size := f.divide()
	return Filter(strings.Clone(string(f.trailer(len(parts) / size))))
}

// has reports whether a part can have a gram.
func (f Filter) has(g uint32) bool {
	return places(g, len(f), func(at uint64) bool { return f[at>>3]>>(at&7)&1 == 1 })
}

func (q *Query) match(f Filter) bool {
	switch q.op {
	case literal:
		three := uint32(0)
		for i := range len(q.literal) {
			c := q.literal[i]
			if i >= 3 && !f.has(withNext(three, c)) {
				return false
			}
			three = gram(three, c)
		}
		for next := range uint32(1 << nextBits) {
			if f.has(three<<nextBits | next) {
				return true
			}
		}
		return false
	case all:
		return !slices.ContainsFunc(q.of, func(sub *Query) bool { return !sub.match(f) })
	case any:
		return slices.ContainsFunc(q.of, func(sub *Query) bool { return sub.match(f) })
	}
	return true
}
