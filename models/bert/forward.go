package bert

import (
	"math"
	"runtime"
	"unsafe"
)

// rowsPerBlock is the number of rows that go through the attention output and the
// feed-forward layers together. Their inner activations must fit into the second-level
// cache, and their arithmetic must take longer than reading the weights from the
// third-level cache.
const rowsPerBlock = 196

// A scratch holds the buffers of one forward pass. Rows are tokens.
type scratch struct {
	rows int // capacity

	hidden  []float32 // [rows][hiddenPad]: the residual stream
	q       []byte    // [rows][hiddenPad]: hidden, quantised
	qScale  []float32
	qMin    []float32
	context []float32 // [rows][contextPad]: the heads' results
	heads   []float32 // [rows][3*padded]: query, key and value of one head
	keys    []float32 // the keys of one head and text, transposed
	scores  []float32 // [attended tiles][tile rows][tokens]
	ints    intHead

	sum    []float32 // [block][hiddenPad]: a layer's output before its norm
	inner  []float32 // [block][innerPad]
	innerQ []byte    // [block][innerPad]

	ids     []int32 // a pack of texts
	starts  []int   // the start of each text, and the end of the last
	seconds []int   // the start of the second text of each pair; empty for single texts

	p8    product8
	p32   product32
	args  rowsArgs
	trans transposeArgs
	head  headArgs
}

// contextPad is the length of a row with the padding of its last head.
func (m *model) contextPad() int { return m.hiddenPad + m.padded }

func (m *model) grow(s *scratch, rows int) {
	if rows <= s.rows {
		return
	}
	// Panels read and write whole tiles, never past their rows; the slack row
	// covers the padding columns of the last.
	s.rows = rows
	s.hidden = aligned[float32](rows * m.hiddenPad)
	s.q = aligned[byte](rows * m.hiddenPad)
	s.qScale, s.qMin = aligned[float32](rows), aligned[float32](rows)
	s.context = aligned[float32](rows * m.contextPad())
	s.heads = aligned[float32](rows * 3 * m.padded)
	tokens := roundUp(rows, panelWidth)
	s.keys = aligned[float32](tokens * m.padded)
	s.scores = aligned[float32](attendedRows * tokens)
	if m.eight && m.kernel.product16 != nil {
		s.ints.grow(m, tokens)
	}
	b := min(rows, rowsPerBlock)
	s.sum = aligned[float32](b * m.hiddenPad)
	s.inner = aligned[float32](b * m.innerPad)
	s.innerQ = aligned[byte](b * m.innerPad)
}

// forward computes the token states of the texts in ids, of which text i is
// ids[starts[i]:starts[i+1]], into s.hidden, rows of hiddenPad. Every id must be
// below words.rows, and no text may be longer than longest tokens.
func (m *model) forward(s *scratch, ids []int32, starts []int) {
	defer runtime.KeepAlive(m) // and its weights
	rows := len(ids)
	m.grow(s, rows)
	m.embed(s, ids, starts)
	for i := range m.blocks {
		b := &m.blocks[i]
		for h := range m.heads {
			m.product(s, columns{b.qkv, 3 * h * m.padded, 3 * m.padded}, matrix{s.hidden, m.hiddenPad}, quantized{s.q, m.hiddenPad, 0}, matrix{s.heads, 3 * m.padded}, rows)
			for t := range len(starts) - 1 {
				m.attention(m, s, h, starts[t], starts[t+1])
			}
		}
		for at := 0; at < rows; at += rowsPerBlock {
			m.feed(s, b, at, min(rowsPerBlock, rows-at))
		}
	}
}

// embed writes the normalised sums of word, position and type embeddings.
func (m *model) embed(s *scratch, ids []int32, starts []int) {
	for t := range len(starts) - 1 {
		for i := starts[t]; i < starts[t+1]; i++ {
			row := s.hidden[i*m.hiddenPad : i*m.hiddenPad+m.hidden]
			copy(row, m.positions[(i-starts[t])*m.hidden:])
			sum := s.context[i*m.contextPad() : i*m.contextPad()+m.hidden]
			clear(sum)
			m.words.add(sum, int(ids[i]))
			if t < len(s.seconds) && i >= s.seconds[t] {
				for j, v := range m.second {
					sum[j] += v
				}
			}
		}
	}
	m.addNorm(s, matrix{s.context, m.contextPad()}, 0, len(ids), &m.embedNorm)
}

// A matrix is rows of float32s that begin stride entries apart.
type matrix struct {
	data   []float32
	stride int
}

// quantized are rows of bytes that begin stride bytes apart. The scales and
// minima of their activations begin at entry at of the scratch.
type quantized struct {
	data       []byte
	stride, at int
}

// columns are the columns [from, from+n) of a matrix of weights.
type columns struct {
	*packed
	from, n int
}

// addNorm adds x to rows of the residual stream from row at and normalises them.
// It overwrites x.
func (m *model) addNorm(s *scratch, x matrix, at, rows int, n *packedNorm) {
	s.args = rowsArgs{
		x: &x.data[0], ld: 4 * x.stride, n: m.hidden, rows: rows,
		residual: &s.hidden[at*m.hiddenPad], ldr: 4 * m.hiddenPad,
		weight: &n.weight[0], bias: &n.bias[0], epsilon: float32(n.epsilon), inverse: 1 / float32(m.hidden),
		inputWeight: &n.inputWeight[0], inputBias: &n.inputBias[0],
	}
	m.norm(&s.args)
	if m.eight {
		m.quantizeRows(s, x, m.hidden, rows, quantized{s.q[at*m.hiddenPad:], m.hiddenPad, at})
	}
}

// quantizeRows writes n entries of each row of x as bytes to q.
func (m *model) quantizeRows(s *scratch, x matrix, n, rows int, q quantized) {
	s.args = rowsArgs{
		x: &x.data[0], ld: 4 * x.stride, n: n, rows: rows,
		q: &q.data[0], ldq: q.stride, scale: &s.qScale[q.at], min: &s.qMin[q.at],
	}
	m.quantize(&s.args)
}

// product computes rows of x times w into c, from the bytes q of x if the weights
// are bytes.
func (m *model) product(s *scratch, w columns, x matrix, q quantized, c matrix, rows int) {
	k := m.kernel
	if m.eight {
		s.p8 = product8{lda: q.stride, depth: w.depth, ldc: 4 * c.stride, panels: 1}
		if k.wide {
			s.p8.panels = w.n / k.cols
		}
		if w.gelu {
			s.p8.gelu = 1
		}
		for j := w.from; j < w.from+w.n; j += k.cols * s.p8.panels {
			s.p8.w = &w.codes[j*w.depth]
			s.p8.wscale, s.p8.wsum, s.p8.bias = &w.scale[j], &w.sums[j], &w.bias[j]
			for i, left := 0, rows; left > 0; {
				s.p8.rows, s.p8.tiles = split(left, k.rows)
				s.p8.a, s.p8.c = &q.data[i*q.stride], &c.data[i*c.stride+j-w.from]
				s.p8.scale, s.p8.min = &s.qScale[q.at+i], &s.qMin[q.at+i]
				k.product8(&s.p8)
				i += s.p8.rows * s.p8.tiles
				left = rows - i
			}
		}
		return
	}
	for j := w.from; j < w.from+w.n; j += k.fcols {
		k.multiply(s, x, w.depth, matrix{w.floats[j*w.depth:], k.fcols}, matrix{c.data[j-w.from:], c.stride}, rows)
		bias := w.bias[j : j+k.fcols]
		for i := range rows {
			row := c.data[i*c.stride+j-w.from:][:k.fcols]
			for d, v := range bias {
				row[d] += v
			}
		}
	}
}

// multiply computes rows of x times the panel b, of depth rows, into c.
func (k *kernel) multiply(s *scratch, x matrix, depth int, b, c matrix, rows int) {
	s.p32 = product32{lda: 4 * x.stride, b: &b.data[0], ldb: 4 * b.stride, depth: depth, ldc: 4 * c.stride}
	k.inTiles(s, k.product32, &x.data[0], &c.data[0], rows)
}

// inTiles calls product with s.p32 for tiles of the rows that begin at a and c.
func (k *kernel) inTiles(s *scratch, product func(*product32), a, c *float32, rows int) {
	for i := 0; i < rows; i += s.p32.rows * s.p32.tiles {
		s.p32.rows, s.p32.tiles = split(rows-i, k.frows)
		s.p32.a = (*float32)(unsafe.Add(unsafe.Pointer(a), i*s.p32.lda))
		s.p32.c = (*float32)(unsafe.Add(unsafe.Pointer(c), i*s.p32.ldc))
		product(&s.p32)
	}
}

// split divides rows evenly into tiles of at most most rows. It returns the height of the
// first tiles and the number of tiles with that height.
func split(rows, most int) (height, tiles int) {
	n := (rows + most - 1) / most
	if extra := rows % n; extra > 0 {
		return rows/n + 1, extra
	}
	return rows / n, n
}

// feed applies the output projection and the feed-forward layers to rows of the
// heads' results, from row at, and adds to the residual stream.
func (m *model) feed(s *scratch, b *block, at, rows int) {
	context := matrix{s.context[at*m.contextPad():], m.contextPad()}
	hidden := matrix{s.hidden[at*m.hiddenPad:], m.hiddenPad}
	sum, inner := matrix{s.sum, m.hiddenPad}, matrix{s.inner, m.innerPad}
	q, innerQ := quantized{s.q[at*m.hiddenPad:], m.hiddenPad, at}, quantized{s.innerQ, m.innerPad, at}
	if m.eight {
		m.quantizeRows(s, context, m.hidden, rows, q)
	}
	m.product(s, columns{b.output, 0, m.hiddenPad}, context, q, sum, rows)
	m.addNorm(s, sum, at, rows, &b.attentionNorm)
	m.product(s, columns{b.up, 0, m.innerPad}, hidden, q, inner, rows)
	if !b.up.gelu {
		s.args = rowsArgs{x: &s.inner[0], ld: 4 * m.innerPad, n: m.innerPad, rows: rows}
		m.gelu(&s.args)
	}
	if m.eight {
		m.quantizeRows(s, inner, m.innerPad, rows, innerQ)
	}
	m.product(s, columns{b.down, 0, m.hiddenPad}, inner, innerQ, sum, rows)
	m.addNorm(s, sum, at, rows, &b.outputNorm)
}

// pool writes the unit vector of the text in rows [start, end) to out.
func (m *model) pool(s *scratch, start, end int, first bool, out []float32) {
	if first {
		end = start + 1
	}
	clear(out)
	for i := start; i < end; i++ {
		for j, v := range s.hidden[i*m.hiddenPad : i*m.hiddenPad+m.hidden] {
			out[j] += v
		}
	}
	// The mean's division cancels in the normalisation.
	var squares float64
	for _, v := range out {
		squares += float64(v) * float64(v)
	}
	if !(squares > 0) || math.IsInf(squares, 0) {
		clear(out)
		out[0] = 1
		return
	}
	inverse := float32(1 / math.Sqrt(squares))
	for j := range out {
		out[j] *= inverse
	}
}
