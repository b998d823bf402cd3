package ngram

import (
	"encoding/binary"
	"math/bits"
	"runtime"

	"cairn/models/offheap"
)

// A Table has the filters of files by place instead of by file, so that a query reads a few
// bytes for each of its grams. All parts whose filters have the same size, and thus the same
// places, have a row of bits for each place, with one bit for each part. See Bingmann et al.,
// "COBS: a Compact Bit-Sliced Signature Index" (2019), and Goodwin et al., "BitFunnel" (2017).
// It is outside of Go's heap and does not change.
type Table struct {
	groups []*group
	spans  []span // of each file
}

// group has the parts whose filters have a size. Without rows, it has too few.
type group struct {
	size, row int      // bytes of a filter and of a row
	rows      []byte   // 8 x size x row
	files     []uint32 // of each part
}

// span names the parts of a file: n of a group, from first. n is 0 if they are unknown.
type span struct{ group, first, n int32 }

// tableParts is the number of parts of a size that is worth rows.
const tableParts = 8

// NewTable returns the table of filters, without those of unknown files and of sizes that few
// parts have: see Has.
func NewTable(filters []Filter) *Table {
	t, number, parts := &Table{spans: make([]span, len(filters))}, map[int]int{}, [][]Filter{}
	for i, f := range filters {
		all, size := f.divide()
		if all == "" {
			continue
		}
		n, known := number[size]
		if !known {
			n = len(parts)
			number[size], parts = n, append(parts, nil)
			t.groups = append(t.groups, &group{size: size})
		}
		g := t.groups[n]
		t.spans[i] = span{int32(n), int32(len(g.files)), int32(len(all) / size)}
		for ; all != ""; all = all[size:] {
			g.files, parts[n] = append(g.files, uint32(i)), append(parts[n], all[:size])
		}
	}
	for n, g := range t.groups {
		if len(g.files) >= tableParts {
			g.fill(parts[n])
		}
	}
	return t
}

// fill sets the rows, 64 parts and 64 places at a time.
func (g *group) fill(parts []Filter) {
	g.row = (len(parts) + 7) / 8
	g.rows = offheap.Allocate(8 * g.size * g.row)
	runtime.AddCleanup(g, offheap.Free, g.rows)
	var square [64]uint64
	var bits [8]byte
	for first := 0; first < g.row; first += 8 {
		some := parts[8*first : min(8*first+64, len(parts))]
		for at := 0; at < g.size; at += 8 {
			clear(square[:])
			for i, f := range some {
				square[i] = binary.LittleEndian.Uint64([]byte(f[at : at+8]))
			}
			transpose(&square)
			for i, row := range square {
				binary.LittleEndian.PutUint64(bits[:], row)
				copy(g.rows[(8*at+i)*g.row:][first:g.row], bits[:])
			}
		}
	}
}

// transpose exchanges rows and columns of a square of bits: Warren, "Hacker's Delight", 7-3.
func transpose(square *[64]uint64) {
	for half, mask := 32, uint64(1<<32-1); half > 0; half, mask = half/2, mask^mask<<(half/2) {
		for i := 0; i < 64; i = (i + half + 1) &^ half {
			x := (square[i]>>half ^ square[i+half]) & mask
			square[i], square[i+half] = square[i]^x<<half, square[i+half]^x
		}
	}
}

// Has reports whether the table has the parts of file i.
func (t *Table) Has(i int) bool {
	return t != nil && t.spans[i].n > 0 && t.groups[t.spans[i].group].row > 0
}

// Matches are the files, and their parts, that can have a line which fulfils a query.
type Matches struct {
	table *Table
	files []uint64
	parts [][]byte // by group
}

// Match returns the matches of q.
func (t *Table) Match(q *Query) *Matches {
	m := &Matches{table: t, files: make([]uint64, (len(t.spans)+63)/64), parts: make([][]byte, len(t.groups))}
	for n, g := range t.groups {
		if g.row == 0 {
			continue
		}
		m.parts[n] = g.match(q)
		for at, b := range m.parts[n] {
			for ; b != 0; b &= b - 1 {
				file := g.files[8*at+bits.TrailingZeros8(b)]
				m.files[file>>6] |= 1 << (file & 63)
			}
		}
	}
	runtime.KeepAlive(t)
	return m
}

// Has reports whether file i, which the table has, can have a line.
func (m *Matches) Has(i int) bool { return m.files[i>>6]>>(i&63)&1 != 0 }

// Parts is Query.Parts for file i, which the table has. f may have the trailer alone.
func (m *Matches) Parts(i int, f Filter) []Part {
	s := m.table.spans[i]
	return f.parts(int(s.n), func(n int) bool {
		at := int(s.first) + n
		return m.parts[s.group][at>>3]>>(at&7)&1 != 0
	})
}

// match returns a bit for each part.
func (g *group) match(q *Query) []byte {
	out := make([]byte, g.row)
	if q.op != any {
		for i := range out {
			out[i] = 0xff
		}
		out[g.row-1] >>= 8*g.row - len(g.files)
	}
	switch q.op {
	case literal:
		three, more := uint32(0), true
		for i := 0; i < len(q.literal) && more; i++ {
			c := q.literal[i]
			if i >= 3 {
				more = g.and(out, withNext(three, c))
			}
			three = gram(three, c)
		}
		whole, one := make([]byte, g.row), make([]byte, g.row)
		for next := uint32(0); more && next < 1<<nextBits; next++ {
			copy(one, out)
			g.and(one, three<<nextBits|next)
			for i, b := range one {
				whole[i] |= b
			}
		}
		return whole
	case all, any:
		for _, sub := range q.of {
			for i, b := range g.match(sub) {
				if q.op == all {
					out[i] &= b
				} else {
					out[i] |= b
				}
			}
		}
	}
	return out
}

// and removes the parts without a gram from set, and reports whether some remain.
func (g *group) and(set []byte, gram uint32) bool {
	var some uint64
	places(gram, g.size, func(at uint64) bool {
		some = 0
		row, set := g.rows[int(at)*g.row:][:g.row], set
		for len(set) >= 8 {
			x := binary.LittleEndian.Uint64(set) & binary.LittleEndian.Uint64(row)
			binary.LittleEndian.PutUint64(set, x)
			some |= x
			set, row = set[8:], row[8:]
		}
		for i, b := range row {
			set[i] &= b
			some |= uint64(set[i])
		}
		return some != 0
	})
	return some != 0
}
