package flat

import (
	"math"
	"math/bits"
	"runtime"
	"unsafe"
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
	// lanes is the number of vectors that are interleaved in a sketch: word w of vector i
	// of a group is at [w*lanes+i].
	lanes = 8
	// planes is the number of bits of a query's coordinate, in two's complement.
	planes = 4
)

// noLow are the low bytes of a vector that has codes only.
var noLow [MaxDimension + strideUnit]byte

// sketch is the sketch of a full block.
type sketch struct {
	signs  []uint64 // blockLen x words, in groups of lanes; outside of Go's heap
	centre []byte   // codes of the mean of the block's vectors
	scale  float32  // of centre
	factor [blockLen]float32
	sigma  [blockLen]float32 // standard deviation of the estimate's error
}

// sketchQuery is a query with 4 bits a coordinate. Its scores have the units of the 8-bit
// query.
type sketchQuery struct {
	planes []uint64 // planes x words
	// A score is at most centre + factor x (slope x sum + offset) + spread x sigma.
	slope, offset, spread float32
}

// newSketchQuery quantises v to step x u with u in [-7, 7]. scale is the scale of the
// 8-bit query.
func newSketchQuery(v []float32, stride int, scale float32) *sketchQuery {
	words := stride / 64
	q := &sketchQuery{planes: make([]uint64, planes*words)}
	var top float32
	for _, x := range v {
		top = max(top, x, -x)
	}
	step := top / 7
	if step == 0 {
		step = 1
	}
	total, lost := 0, 0.0
	for i, x := range v {
		u := int(math.RoundToEven(float64(x / step)))
		total += u
		e := float64(x) - float64(u)*float64(step)
		lost += e * e
		for p := range planes {
			q.planes[p*words+i/64] |= uint64(u>>p&1) << (i % 64)
		}
	}
	q.slope, q.offset = 2*step/scale, -step*float32(total)/scale
	// The error of rounding the query, with the a of normally distributed coordinates.
	q.spread = sketchMargin / scale * float32(math.Sqrt(1+lost/(1-2/math.Pi)))
	return q
}

// newSketch makes the sketch of a full block of vectors of length dim.
func newSketch(b *block, dim, stride int, k kernel) *sketch {
	words := stride / 64
	memory := allocate(8 * blockLen * words)
	s := &sketch{signs: unsafe.Slice((*uint64)(unsafe.Pointer(&memory[0])), blockLen*words), centre: make([]byte, stride)}
	runtime.AddCleanup(s, free, memory)
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
		signs := s.signs[i/lanes*lanes*words+i%lanes:]
		var l1, l2 float32
		for j, x := range vector {
			r := x - centre[j]
			bits := math.Float32bits(r)
			signs[j/64*lanes] |= uint64(^bits>>31) << (j % 64)
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
	estimates, sums := new([blockLen]float32), new([blockLen]int32)
	for i := 0; i < blockLen; i += blockLen / asked {
		dequantise(v, b.codes[i*stride:], b.scale[i])
		q := newQuery(v, stride)
		sq := newSketchQuery(v, stride, q.scale)
		k.dots(dots, b.codes, q, stride)
		k.sums(sums[:], s.signs, sq.planes)
		s.estimate(k, estimates, sums, sq, s.score(k, q))
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

// estimate sets estimates to the estimated scores of the block's vectors. sums are the
// sums of a kernel, centre is the score of the centre.
func (s *sketch) estimate(k kernel, estimates *[blockLen]float32, sums *[blockLen]int32, q *sketchQuery, centre float32) {
	k.estimates(estimates, sums, &s.factor, q.slope, q.offset, centre)
}

// estimatesPortable sets out to centre + factor x (slope x sums + offset).
func estimatesPortable(out *[blockLen]float32, sums *[blockLen]int32, factor *[blockLen]float32, slope, offset, centre float32) {
	for i := range out {
		out[i] = centre + float32(factor[i]*(float32(slope*float32(sums[i]))+offset))
	}
}

// places appends the places of the block whose scores can reach floor.
func (s *sketch) places(k kernel, places []uint16, estimates *[blockLen]float32, spread, floor float32) []uint16 {
	var reaching blockBits
	k.atLeast(&reaching, estimates, &s.sigma, spread, floor)
	for word, b := range reaching {
		for ; b != 0; b &= b - 1 {
			places = append(places, uint16(16*word+bits.TrailingZeros16(b)))
		}
	}
	return places
}

// atLeastPortable sets the bits of the vectors whose estimate + spread x sigma is at least
// floor.
func atLeastPortable(bits *blockBits, estimates, sigma *[blockLen]float32, spread, floor float32) {
	for word := range bits {
		var b uint16
		for i := range 16 {
			if at := 16*word + i; estimates[at]+float32(spread*sigma[at]) >= floor {
				b |= 1 << i
			}
		}
		bits[word] = b
	}
}

// sumsPortable is the portable kernel: sums[i] is the sum of the query's
// coordinates, as planes have them, over the signs that are set of vector i. The
// number of vectors is a multiple of lanes.
func sumsPortable(sums []int32, signs, query []uint64) {
	words := len(query) / planes
	p0, p1, p2, p3 := query[:words], query[words:2*words], query[2*words:3*words], query[3*words:4*words]
	for i := range sums {
		at := signs[i/lanes*lanes*words+i%lanes:]
		var n0, n1, n2, n3 int
		for w := range words {
			x := at[w*lanes]
			n0 += bits.OnesCount64(x & p0[w])
			n1 += bits.OnesCount64(x & p1[w])
			n2 += bits.OnesCount64(x & p2[w])
			n3 += bits.OnesCount64(x & p3[w])
		}
		sums[i] = int32(n0 + 2*n1 + 4*n2 - 8*n3)
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
