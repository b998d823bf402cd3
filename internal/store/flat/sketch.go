package flat

import (
	"math"
	"math/bits"
	"runtime"
	"slices"
)

// A search of a large store first reads one bit a coordinate, and then the 8-bit codes of
// the vectors that can still be among the best. It reads an eighth of the memory.
//
// The sketch of a vector x is the signs s of its residual r = x - c from the mean
// c of its block, and two numbers. It estimates a query's cosine as
//
//	q.x = q.c + q.r,  q.r ~ |r|^2 / sum|r_i| x sum s_i q_i
//
// which is the estimator of RaBitQ (Gao and Long, SIGMOD 2024, equations 13 and
// 20) without its random rotation: the coordinates of sentence embeddings behave as if they
// were rotated, and calibrate widens the bound if they do not. The standard deviation of
// its error is
//
//	|r| x sqrt((1-a^2) / a^2) / sqrt(D-1),  a = sum|r_i| / (sqrt(D) |r|)
//
// (equation 14): 0.033 for MiniLM, where a is about 0.79.

const (
	// sketchFrom is the number of vectors from which sketches are worth their cost.
	sketchFrom = 16 * blockLen
	// sketchMargin is the number of standard deviations by which a cosine can exceed its
	// estimate. A search misses a vector just above the k-th best at most once in 4,000
	// times (in a test, none of 60,000 hits), and never one well above it.
	sketchMargin = 3.5
	// lanes is the number of vectors that are interleaved in a sketch: byte b of vector i
	// of a group is at [b*lanes+i].
	lanes = 64
)

// noLow are the low bytes of a vector that has codes only.
var noLow [MaxDimension + strideUnit]byte

// sketch is the sketch of a full block.
type sketch struct {
	signs  []byte  // blockLen x stride / 8, in groups of lanes; outside of Go's heap
	centre []byte  // codes of the mean of the block's vectors
	scale  float32 // of centre
	factor [blockLen]float32
	sigma  [blockLen]float32 // standard deviation of the estimate's error
}

// sketchQuery is a query in the form that sketches need: numbers u with q = step x u. Its
// scores have the units of the 8-bit query.
type sketchQuery struct {
	// tables has 16 bytes for each 4 coordinates. Entry b is the sum of |u| over the
	// coordinates whose sign in b is that of u. Twice the sum of a vector's entries, less
	// the sum of all |u|, is the sum of s_i u_i.
	tables []byte
	// pairs has the sums of the two entries for each byte of signs. It is nil if the
	// kernel uses tables.
	pairs [][256]uint16
	// A score is at most centre + factor x (slope x sum + offset) + spread x sigma.
	slope, offset, spread float32
}

// maxWordStride is the largest stride for which the sum of all tables' entries fits 16 bits.
const maxWordStride = 2048

// newSketchQuery quantises v so that the entries of a table are at most 127. scale is the
// scale of the 8-bit query.
func newSketchQuery(v []float32, stride int, scale float32, k kernel) *sketchQuery {
	var top float32
	for four := range slices.Chunk(v, 4) {
		var sum float32
		for _, x := range four {
			sum += max(x, -x)
		}
		top = max(top, sum)
	}
	step := top / 125 // rounding adds at most 4 x 1/2
	if step == 0 {
		step = 1
	}
	q := &sketchQuery{tables: make([]byte, 4*stride)}
	total, lost := 0, 0.0
	for i, x := range v {
		u := int(math.RoundToEven(float64(x / step)))
		e := float64(x) - float64(u)*float64(step)
		lost += e * e
		total += max(u, -u)
		table := q.tables[i/4*16:][:16]
		for b := range table {
			if set := b>>(i%4)&1 != 0; set == (u > 0) {
				table[b] += byte(max(u, -u))
			}
		}
	}
	if k.pairs || stride > maxWordStride {
		q.pairs = make([][256]uint16, stride/8)
		for i := range q.pairs {
			low, high := q.tables[32*i:][:16], q.tables[32*i+16:][:16]
			for b := range q.pairs[i] {
				q.pairs[i][b] = uint16(low[b&15]) + uint16(high[b>>4])
			}
		}
	}
	q.slope, q.offset = 2*step/scale, -step*float32(total)/scale
	// The error of rounding the query, with the a of normally distributed coordinates.
	q.spread = sketchMargin / scale * float32(math.Sqrt(1+lost/(1-2/math.Pi)))
	return q
}

// newSketch makes the sketch of a full block of vectors of length dim.
func newSketch(b *block, dim, stride int, k kernel) *sketch {
	s := &sketch{signs: allocate(blockLen * stride / 8), centre: make([]byte, stride)}
	runtime.AddCleanup(s, free, s.signs)
	centre, vector := make([]float32, dim), make([]float32, dim)
	for i := range blockLen {
		dequantise(vector, b.codes[i*stride:], b.scale[i])
		for j, x := range vector {
			centre[j] += x / blockLen
		}
	}
	s.scale = quantise(s.centre, nil, centre)
	dequantise(centre, s.centre, s.scale) // the residuals include the rounding error
	for i := range blockLen {
		dequantise(vector, b.codes[i*stride:], b.scale[i])
		signs := s.signs[i/lanes*lanes*stride/8+i%lanes:]
		var l1, l2 float32
		for j, x := range vector {
			r := x - centre[j]
			bits := math.Float32bits(r)
			signs[j/8*lanes] |= byte(^bits>>31) << (j % 8)
			l1 += math.Float32frombits(bits &^ (1 << 31))
			l2 += r * r
		}
		if l1 > 0 {
			s.factor[i] = l2 / l1
			a2 := float64(l1) * float64(l1) / float64(l2) / float64(dim)
			s.sigma[i] = float32(math.Sqrt(float64(l2) * max(0, 1-a2) / a2 / max(1, float64(dim-1))))
		}
	}
	s.calibrate(b, dim, stride, k)
	return s
}

// calibrate widens the deviations if the estimates for some of the block's own vectors
// have larger errors than the theory predicts.
func (s *sketch) calibrate(b *block, dim, stride int, k kernel) {
	const asked = 4
	var sum float64
	n := 0
	v, dots := make([]float32, dim), make([]int32, blockLen)
	estimates := new([blockLen]float32)
	for i := 0; i < blockLen; i += blockLen / asked {
		dequantise(v, b.codes[i*stride:], b.scale[i])
		q := newQuery(v, stride)
		sq := newSketchQuery(v, stride, q.scale, k)
		k.dots(dots, b.codes, q, stride)
		k.estimates(estimates, s, sq, s.score(k, q))
		for m := range blockLen {
			if m == i || s.sigma[m] == 0 {
				continue
			}
			e := float64((estimates[m]-float32(dots[m]-q.bias)*b.scale[m])*sketchMargin) / float64(sq.spread*s.sigma[m])
			sum += e * e
			n++
		}
	}
	if n == 0 {
		return
	}
	if wider := float32(math.Sqrt(sum / float64(n))); wider > 1 {
		for i := range s.sigma {
			s.sigma[i] *= wider
		}
	}
}

// score returns the score of the centre.
func (s *sketch) score(k kernel, q *query) float32 {
	// The low bytes are 0, so that each number is 256 times the code's.
	return float32(k.fine(q.int16, s.centre, noLow[:len(s.centre)])>>8) * s.scale
}

// estimatesPortable sets out to the estimated scores of the block's vectors. centre is the
// score of the centre.
func estimatesPortable(out *[blockLen]float32, s *sketch, q *sketchQuery, centre float32) {
	signs := s.signs
	for first := 0; first < blockLen; first += lanes {
		var sums [lanes]uint32
		for i := range q.pairs {
			row := (*[lanes]byte)(signs)
			for at, b := range row {
				sums[at] += uint32(q.pairs[i][b])
			}
			signs = signs[lanes:]
		}
		for at, sum := range sums {
			out[first+at] = centre + float32(s.factor[first+at]*(float32(q.slope*float32(sum))+q.offset))
		}
	}
}

// places appends the places of the block whose scores can reach floor.
func (s *sketch) places(k kernel, places []uint16, estimates *[blockLen]float32, spread, floor float32) []uint16 {
	var reaching blockBits
	k.atLeast(&reaching, estimates, &s.sigma, spread, floor)
	for word, b := range reaching {
		for ; b != 0; b &= b - 1 {
			places = append(places, uint16(8*word+bits.TrailingZeros8(b)))
		}
	}
	return places
}

// atLeastPortable sets the bits of the vectors whose estimate + spread x sigma is at least
// floor.
func atLeastPortable(bits *blockBits, estimates, sigma *[blockLen]float32, spread, floor float32) {
	for word := range bits {
		var b byte
		for i := range 8 {
			if at := 8*word + i; estimates[at]+float32(spread*sigma[at]) >= floor {
				b |= 1 << i
			}
		}
		bits[word] = b
	}
}

// sketchAll makes the missing sketches in the background, one at a time. No search waits
// for them.
func (s *Store) sketchAll(snap *snapshot) {
	if !s.sketching.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer s.sketching.Store(false)
		for _, b := range snap.full() {
			if s.snap.Load() == nil { // closed
				return
			}
			if b.sketch.Load() == nil {
				b.sketch.Store(newSketch(b, snap.dim, snap.stride, s.kernel))
			}
		}
	}()
}

// full returns the blocks that will not change.
func (s *snapshot) full() []*block { return s.blocks[:s.n/blockLen] }
