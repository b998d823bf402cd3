package receipt

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"
)

// document is a text with its lines and, once packed, its content apart from white space.
type document struct {
	text   []byte
	starts []int    // offset of each line in text, and len(text)
	solid  []byte   // text without white space and byte order marks
	inner  []int    // offset of each line in solid, and len(solid)
	words  []int    // offsets in solid where words begin
	rolls  []uint64 // polynomial hash of each prefix of solid
	hashes []string // neighbour of each line
}

func newDocument(text []byte) *document {
	d := &document{text: text}
	at := 0
	for line := range bytes.Lines(text) {
		d.starts = append(d.starts, at)
		at += len(line)
	}
	d.starts = append(d.starts, len(text))
	return d
}

// pack makes the content without white space.
func (d *document) pack() {
	if d.inner != nil {
		return
	}
	d.solid = make([]byte, 0, len(d.text))
	space, line := true, 0
	for at := 0; at < len(d.text); {
		if at == d.starts[line] {
			d.inner = append(d.inner, len(d.solid))
			line++
		}
		r, n := rune(d.text[at]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(d.text[at:])
		}
		if unicode.IsSpace(r) || r == '\ufeff' {
			space = true
		} else {
			if space {
				d.words = append(d.words, len(d.solid))
			}
			d.solid, space = append(d.solid, d.text[at:at+n]...), false
		}
		at += n
	}
	d.inner = append(d.inner, len(d.solid))
}

func (d *document) lines() int { return len(d.starts) - 1 }

// raw returns the lines start to end with their line breaks, without the last one: a line
// does not change when another follows it.
func (d *document) raw(start, end int) []byte {
	return bytes.TrimSuffix(d.text[d.starts[start-1]:d.starts[end]], []byte("\n"))
}

// packed returns the lines start to end without white space.
func (d *document) packed(start, end int) []byte {
	d.pack()
	return d.solid[d.inner[start-1]:d.inner[end]]
}

// nearest returns the nearest line that is not blank, without white space: above line n for
// step -1, below it for step 1.
func (d *document) nearest(n, step int) []byte {
	for n += step; n > 0 && n <= d.lines(); n += step {
		if line := d.packed(n, n); len(line) > 0 {
			return line
		}
	}
	return nil
}

// neighbour returns the hash of line n, empty if it is blank.
func (d *document) neighbour(n int) string {
	if d.hashes == nil {
		d.hashes = make([]string, d.lines())
		for i := range d.hashes {
			d.hashes[i] = neighbour(d.packed(i+1, i+1))
		}
	}
	return d.hashes[n-1]
}

// line returns the line, from 1, with the byte at an offset of solid.
func (d *document) line(offset int) int {
	n, _ := slices.BinarySearch(d.inner, offset+1)
	return n
}

// base is the multiplier of the polynomial hash modulo 1<<64. It is odd and has no small
// order. A collision costs time only.
const base = 0x9E3779B97F4A7C15

// rolled returns the twelve bits of the hash of solid[from:to].
func (d *document) rolled(from, to int, power uint64) uint64 {
	if d.rolls == nil {
		d.rolls = make([]uint64, len(d.solid)+1)
		for i, c := range d.solid {
			d.rolls[i+1] = d.rolls[i]*base + uint64(c) + 1
		}
	}
	return (d.rolls[to] - d.rolls[from]*power) >> 52
}

func rolledOf(packed []byte) (h uint64) {
	for _, c := range packed {
		h = h*base + uint64(c) + 1
	}
	return h >> 52
}

// powerOf returns the power of base for a length.
func powerOf(length int) uint64 {
	p, b := uint64(1), uint64(base)
	for ; length > 0; length >>= 1 {
		if length&1 == 1 {
			p *= b
		}
		b *= b
	}
	return p
}
