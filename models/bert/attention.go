package bert

import (
	"math"
	"unsafe"
)

// attended is the number of tiles of rows whose scores are computed together. The scores fit
// into the first-level cache.
const attended = 4

// attendedRows is the most rows whose scores are computed together. It is at least attended
// times the rows of any kernel's tile.
const attendedRows = 64

// attend is the attention in floats.
func (m *model) attend(s *scratch, head, start, end int) {
	k, n := m.kernel, end-start
	ld := 3 * m.padded
	own := s.heads[start*ld:]
	s.trans = transposeArgs{x: &own[m.padded], ld: 4 * ld, n: m.size, rows: n, out: &s.keys[0], cols: k.fcols}
	k.transpose(&s.trans)
	wide := roundUp(n, k.fcols)
	for i := 0; i < n; i += attended * k.frows {
		rows := min(n-i, attended*k.frows)
		for j := 0; j < n; j += k.fcols {
			k.multiply(s, matrix{own[i*ld:], ld}, m.size, matrix{s.keys[j*m.size:], k.fcols}, matrix{s.scores[j:], wide}, rows)
		}
		s.args = rowsArgs{x: &s.scores[0], ld: 4 * wide, n: n, rows: rows}
		k.softmax(&s.args)
		for j := 0; j < m.size; j += k.fcols {
			k.multiply(s, matrix{s.scores, wide}, n, matrix{own[2*m.padded+j:], ld}, matrix{s.context[(start+i)*m.contextPad()+head*m.size+j:], m.contextPad()}, rows)
		}
	}
}

// attention returns the function that computes one head of one text's attention into the
// context.
func attention(k *kernel, eight bool) func(m *model, s *scratch, head, start, end int) {
	switch {
	case eight && k.productBF16 != nil:
		return (*model).attendBF16
	case eight && k.packKeys != nil:
		return (*model).attendInt
	case eight && k.packWords != nil:
		return (*model).attendWords
	}
	return (*model).attend
}

// An intHead holds the buffers for attention of one head and text other than in floats: bytes
// for attendInt, words for attendWords, bfloat16 for attendBF16.
type intHead struct {
	queries              []byte // [tokens][padded]
	queryScale, queryMin []float32
	keyBytes             []byte // [tokens][padded]
	keys                 []byte // [tokens/32][padded/4][32][4], or words [tokens/fcols][padded/2][fcols][2]
	keyScale, keySum     []float32
	values               []byte // words [padded/fcols][tokens/2][fcols][2]
	valueScale           []float32
	probabilities        []byte    // words [attendedRows][tokens]
	zero                 []float32 // the scores' bias
	rowScale             []float32 // of the results of attendBF16
}

// grow makes room for a number of tokens, a multiple of panelWidth.
func (h *intHead) grow(m *model, tokens int) {
	h.queries, h.keyBytes, h.keys = aligned[byte](2*tokens*m.padded), aligned[byte](2*tokens*m.padded), aligned[byte](2*tokens*m.padded)
	h.queryScale, h.queryMin = aligned[float32](tokens), aligned[float32](tokens)
	h.keyScale, h.keySum = aligned[float32](tokens), aligned[float32](tokens)
	h.values, h.valueScale = aligned[byte](2*tokens*m.padded), aligned[float32](m.padded)
	h.probabilities = aligned[byte](2*attendedRows*tokens + panelWidth)
	h.zero = aligned[float32](panelWidth)
	h.rowScale = aligned[float32](attendedRows)
}

// attendInt is attend with scores computed from bytes, and probabilities and values in
// words. Bytes are precise enough for scores, since the softmax turns their error into a
// factor near 1. Probabilities need words, because the many small ones would round to 0 in
// bytes.
func (m *model) attendInt(s *scratch, head, start, end int) {
	k, h, n := m.kernel, &s.ints, end-start
	ld, wide := 3*m.padded, roundUp(n, panelWidth)
	own := s.heads[start*ld:]
	s.args = rowsArgs{
		x: &own[0], ld: 4 * ld, n: m.padded, rows: n,
		q: &h.queries[0], ldq: m.padded, scale: &h.queryScale[0], min: &h.queryMin[0],
	}
	k.quantize(&s.args)
	clear(h.keyBytes[n*m.padded : wide*m.padded])
	clear(h.keyScale[n:wide])
	s.head = headArgs{
		x: &own[m.padded], ld: 4 * ld, n: m.padded, rows: n,
		bytes: &h.keyBytes[0], out: &h.keys[0], scale: &h.keyScale[0], sum: &h.keySum[0],
	}
	k.packKeys(&s.head)
	s.head = headArgs{x: &own[2*m.padded], ld: 4 * ld, n: m.padded, rows: n, out: &h.values[0], scale: &h.valueScale[0]}
	k.packValues(&s.head)

	pairs := (n + 1) / 2
	for i := 0; i < n; {
		rows, _ := split(n-i, k.frows)
		s.p8 = product8{
			a: &h.queries[i*m.padded], lda: m.padded, scale: &h.queryScale[i], min: &h.queryMin[i],
			depth: m.padded, bias: &h.zero[0], ldc: 4 * wide, rows: rows, tiles: 1, panels: 1,
		}
		for j := 0; j < n; j += panelWidth {
			s.p8.w = (*int8)(unsafe.Pointer(&h.keys[j*m.padded]))
			s.p8.wscale, s.p8.wsum, s.p8.c = &h.keyScale[j], &h.keySum[j], &s.scores[j]
			k.product8(&s.p8)
		}
		s.args = rowsArgs{x: &s.scores[0], ld: 4 * wide, n: n, rows: rows, q: &h.probabilities[0], ldq: 2 * wide}
		k.softmax16(&s.args)
		s.p32 = product32{
			a: (*float32)(unsafe.Pointer(&h.probabilities[0])), lda: 2 * wide, ldb: 4 * panelWidth, depth: pairs,
			ldc: 4 * m.contextPad(), rows: rows, tiles: 1,
		}
		for j := 0; j < m.size; j += panelWidth {
			s.p32.b = (*float32)(unsafe.Pointer(&h.values[j/panelWidth*pairs*4*panelWidth]))
			s.p32.scale, s.p32.c = &h.valueScale[j], &s.context[(start+i)*m.contextPad()+head*m.size+j]
			k.product16(&s.p32)
		}
		i += rows
	}
}

// attendWords is attend with queries, keys, probabilities and values in words. Sums of
// products of queries and keys fit into 32 bits.
func (m *model) attendWords(s *scratch, head, start, end int) {
	k, h, n := m.kernel, &s.ints, end-start
	ld := 3 * m.padded
	own := s.heads[start*ld:]
	limit := float32(math.Floor(math.Sqrt(math.MaxInt32 / float64(m.padded))))
	s.head = headArgs{x: &own[0], ld: 4 * ld, n: m.padded, rows: n, out: &h.queries[0], scale: &h.queryScale[0], limit: limit}
	k.packWords(&s.head)
	s.head = headArgs{x: &own[m.padded], ld: 4 * ld, n: m.padded, rows: n, out: &h.keyBytes[0], scale: &h.keyScale[0], limit: limit}
	k.packWords(&s.head)
	scale := h.queryScale[0] * h.keyScale[0]
	for j := range k.fcols {
		h.keyScale[j] = scale
	}
	// Two words move like a float32.
	s.trans = transposeArgs{
		x: floatsAt(h.keyBytes), ld: 2 * m.padded, n: m.padded / 2, rows: n, out: floatsAt(h.keys), cols: k.fcols,
	}
	k.transpose(&s.trans)
	s.head = headArgs{x: &own[2*m.padded], ld: 4 * ld, n: m.padded, rows: n, out: &h.values[0], scale: &h.valueScale[0]}
	k.packValues(&s.head)

	wide, pairs := roundUp(n, k.fcols), (n+1)/2
	for i := 0; i < n; i += attended * k.frows {
		rows := min(n-i, attended*k.frows)
		for j := 0; j < n; j += k.fcols {
			s.p32 = product32{lda: 2 * m.padded, b: floatsAt(h.keys[2*j*m.padded:]), ldb: 4 * k.fcols, depth: m.padded / 2, ldc: 4 * wide, scale: &h.keyScale[0]}
			k.inTiles(s, k.product16, floatsAt(h.queries[2*i*m.padded:]), &s.scores[j], rows)
		}
		s.args = rowsArgs{x: &s.scores[0], ld: 4 * wide, n: n, rows: rows, q: &h.probabilities[0], ldq: 2 * wide}
		k.softmax16(&s.args)
		for j := 0; j < m.size; j += k.fcols {
			s.p32 = product32{lda: 2 * wide, b: floatsAt(h.values[4*j*pairs:]), ldb: 4 * k.fcols, depth: pairs, ldc: 4 * m.contextPad(), scale: &h.valueScale[j]}
			k.inTiles(s, k.product16, floatsAt(h.probabilities), &s.context[(start+i)*m.contextPad()+head*m.size+j], rows)
		}
	}
}

// attendBF16 is attend with queries, keys, probabilities and values in bfloat16. The
// probabilities of a row are divided by their sum after the product.
func (m *model) attendBF16(s *scratch, head, start, end int) {
	k, h, n := m.kernel, &s.ints, end-start
	ld, wide := 3*m.padded, roundUp(n, panelWidth)
	own := s.heads[start*ld:]
	s.head = headArgs{x: &own[0], ld: 4 * ld, n: m.padded, rows: n, out: &h.queries[0]}
	k.roundBF16(&s.head)
	s.head.x, s.head.out = &own[m.padded], &h.keyBytes[0]
	k.roundBF16(&s.head)
	s.head.x, s.head.out = &own[2*m.padded], &h.values[0]
	k.packBF16(&s.head)
	// A pair of bfloat16 moves like a float32.
	s.trans = transposeArgs{
		x: floatsAt(h.keyBytes), ld: 2 * m.padded, n: m.padded / 2, rows: n, out: floatsAt(h.keys), cols: panelWidth,
	}
	k.transpose(&s.trans)
	for i := 0; i < n; i += attendedRows {
		rows := min(n-i, attendedRows)
		s.p32 = product32{
			a: floatsAt(h.queries[2*i*m.padded:]), lda: 2 * m.padded, b: floatsAt(h.keys), depth: m.padded / 2,
			c: &s.scores[0], ldc: 4 * wide, rows: rows, tiles: 1, panels: wide / panelWidth,
		}
		k.productBF16(&s.p32)
		s.args = rowsArgs{x: &s.scores[0], ld: 4 * wide, n: n, rows: rows, q: &h.probabilities[0], ldq: 2 * wide, scale: &h.rowScale[0]}
		k.softmaxBF16(&s.args)
		s.p32 = product32{
			a: floatsAt(h.probabilities), lda: 2 * wide, b: floatsAt(h.values), depth: wide / 2,
			c: &s.context[(start+i)*m.contextPad()+head*m.size], ldc: 4 * m.contextPad(),
			rows: rows, tiles: 1, scale: &h.rowScale[0], panels: m.padded / panelWidth,
		}
		k.productBF16(&s.p32)
	}
}

// floatsAt returns the address of words as product32 takes it.
func floatsAt(words []byte) *float32 { return (*float32)(unsafe.Pointer(&words[0])) }
