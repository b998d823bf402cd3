package flat

import (
	"cmp"
	"math"
	"math/bits"
	"runtime"
	"slices"
)

// A search of a large store first reads one bit a coordinate, then four bits of the vectors
// that can still be among the best, and then the 8-bit codes of those that remain. Of a
// million chunks of real documents, 14,000 remain after the first step and 700 after the
// second, for 300 hits.
//
// A sketch describes a vector x of a block with mean c by its residual r = x - c, rounded
// to numbers s: the signs of r, or the nearest of -7.5, -6.5, ... 7.5 steps. It
// estimates a query's cosine as
//
//	q.x = q.c + q.r,  q.r ~ |r|^2 / s.r x s.q
//
// which is the estimator of RaBitQ (Gao and Long, SIGMOD 2024, equations 13 and 20; with
// more bits, Gao et al., SIGMOD 2025) without its random rotation. The coordinates of
// sentence embeddings behave as if they were rotated, and calibrate widens the bound if
// they do not. The standard deviation of its error is
//
//	|r| x sqrt((1-a^2) / a^2) / sqrt(D-1),  a = s.r / (|s| |r|)
//
// (equation 14). For MiniLM, a is about .79 and .994, and the deviation .033 and .005.

const (
	// sketchFrom is the number of vectors from which sketches are worth their cost.
	sketchFrom = 16 * blockLen
	// sketchMargin is the number of standard deviations by which a cosine can exceed its
	// estimate. A search misses a vector just above the k-th best at most once in 4,000
	// times (in a test, none of 60,000 hits), and never one well above it.
	sketchMargin = 3.5
	// lanes is the number of vectors whose signs are interleaved: byte b of vector i of a
	// group is at [b*lanes+i].
	lanes = 64
	// coarseBits is the number of bits of a coarse coordinate, coarseMiddle the mean of its
	// values and coarseStep their distance in standard deviations of a coordinate. The
	// values are the best for a normal distribution (Max, "Quantizing for minimum
	// distortion", IRE Transactions on Information Theory 6(1), 1960).
	coarseBits   = 4
	coarseMiddle = 7.5
	coarseStep   = .3352
	// coarseUnit is the number of coordinates whose coarse codes share 32 bytes.
	coarseUnit = 32 * 8 / coarseBits
)

// noLow are the low bytes of a vector that has codes only.
var noLow [MaxDimension + strideUnit]byte

// estimator has what turns sums into estimates: for each vector of a block, a factor and
// the standard deviation of the estimate's error.
type estimator struct{ factor, sigma *[blockLen]float32 }

// sketch is the sketch of a full block. All of it is in memory, which is outside of Go's
// heap.
type sketch struct {
	memory           []byte
	image            *image // that owns memory; nil if the sketch does
	signs            []byte // blockLen x stride / 8, in groups of lanes
	coarse           []byte // blockLen x coarseSize(stride), see coarsePortable
	bySign, byCoarse estimator
	centre           []byte   // codes of the mean of the block's vectors
	scale            *float32 // of centre
}

// coarseSize returns the size of a coarse code.
func coarseSize(stride int) int { return (stride + coarseUnit - 1) / coarseUnit * 32 }

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

	// coarse is the 8-bit query, padded to a multiple of coarseUnit. With coarse codes, a
	// score is at most centre + factor x (sum - coarseOffset) + coarseSpread x sigma.
	coarse                     []int8
	coarseOffset, coarseSpread float32
}

// maxWordStride is the largest stride for which the sum of all tables' entries fits 16 bits.
const maxWordStride = 2048

// newSketchQuery quantises v so that the entries of a table are at most 127. of is the 8-bit
// query of v.
func newSketchQuery(v []float32, of *query, k kernel) *sketchQuery {
	stride, scale := len(of.int8), of.scale
	var top float32
	for four := range slices.Chunk(v, 4) {
		var sum float32
		for _, x := range four {
			sum += max(x, -x)
		}
		top = max(top, sum)
	}
	step := top / 125 // rounding adds at most 4 x 1/2
	step = cmp.Or(step, 1)
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
	q.coarse = make([]int8, coarseSize(stride)*8/coarseBits)
	copy(q.coarse, of.int8)
	q.coarseOffset, q.coarseSpread = coarseMiddle*float32(of.bias)/codeZero, sketchMargin/scale
	return q
}

// newSketch makes the sketch of a full block of vectors of length dim, which have these
// codes.
func newSketch(b *block, codes []byte, dim, stride int, k kernel) *sketch {
	s, size := allocateSketch(stride), coarseSize(stride)
	centre, r := make([]float32, dim), make([]float32, dim)
	for i := range blockLen {
		dequantise(r, codes[i*stride:], b.scale[i])
		for j, x := range r {
			centre[j] += x / blockLen
		}
	}
	*s.scale = quantise(s.centre, nil, centre)
	dequantise(centre, s.centre, *s.scale) // the residuals include the rounding error
	for i := range blockLen {
		dequantise(r, codes[i*stride:], b.scale[i])
		signs := s.signs[i/lanes*lanes*stride/8+i%lanes:]
		var l1, l2 float32
		for first := 0; first < dim; first += 8 {
			var positive byte
			for j := first; j < min(first+8, dim); j++ {
				x := r[j] - centre[j]
				r[j] = x
				bits := math.Float32bits(x)
				positive |= byte(^bits>>31) << (j - first)
				l1 += math.Float32frombits(bits &^ (1 << 31))
				l2 += x * x
			}
			signs[first/8*lanes] = positive
		}
		s.bySign.set(i, dim, l2, l1, float32(dim))
		product, squares := roundCoarse(s.coarse[i*size:][:size], r, l2)
		s.byCoarse.set(i, dim, l2, product, squares)
	}
	s.calibrate(b, codes, dim, stride, k)
	return s
}

// roundCoarse sets code to the coarse numbers s of the residual r, whose sum of squares is
// l2. It returns s.r and s.s.
func roundCoarse(code []byte, r []float32, l2 float32) (product, squares float32) {
	if l2 == 0 {
		return 0, 0
	}
	const values = 1 << coarseBits
	perStep := float32(math.Sqrt(float64(len(r))/float64(l2))) / coarseStep
	sum, sumOfSquares := 0, 0
	for j, x := range r {
		u := min(max(int(x*perStep+values/2), 0), values-1)
		code[j/coarseUnit*32+j%32] |= byte(u << (j % coarseUnit / 32 * coarseBits))
		product += (float32(u) - coarseMiddle) * x
		sum += u
		sumOfSquares += u * u
	}
	return product, float32(sumOfSquares) - 2*coarseMiddle*float32(sum) + coarseMiddle*coarseMiddle*float32(len(r))
}

// set sets the factor and the deviation of vector i, of dimension dim: l2 is r.r, product
// s.r and squares s.s.
func (e *estimator) set(i, dim int, l2, product, squares float32) {
	if product <= 0 {
		return
	}
	e.factor[i] = l2 / product
	a2 := float64(product) * float64(product) / float64(l2) / float64(squares)
	e.sigma[i] = float32(math.Sqrt(float64(l2) * max(0, 1-a2) / a2 / max(1, float64(dim-1))))
}

// calibrate widens the deviations if the estimates for some of the block's own vectors
// have larger errors than the theory predicts.
func (s *sketch) calibrate(b *block, codes []byte, dim, stride int, k kernel) {
	const asked = 4
	var bySign, byCoarse squaredErrors
	v, dots := make([]float32, dim), make([]int32, blockLen)
	estimates := new([blockLen]float32)
	for i := 0; i < blockLen; i += blockLen / asked {
		dequantise(v, codes[i*stride:], b.scale[i])
		q := newQuery(v, stride)
		sq := newSketchQuery(v, q, k)
		k.dots(dots, codes, q, stride)
		for m := range dots {
			dots[m] -= q.bias
		}
		centre := s.score(k, q)
		k.estimates(estimates, s, sq, centre)
		bySign.add(b, estimates, dots, s.bySign.sigma, sq.spread, i)
		s.estimateCoarse(k, estimates, new([blockLen]int32), allPlaces[:], sq, centre)
		byCoarse.add(b, estimates, dots, s.byCoarse.sigma, sq.coarseSpread, i)
	}
	bySign.widen(s.bySign.sigma)
	byCoarse.widen(s.byCoarse.sigma)
}

// squaredErrors is the sum of n squared errors, in units of their standard deviations.
type squaredErrors struct {
	sum float64
	n   int
}

// add adds the errors of the estimates for vector query.
func (e *squaredErrors) add(b *block, estimates *[blockLen]float32, dots []int32, sigma *[blockLen]float32, unit float32, query int) {
	for i := range blockLen {
		if i == query || sigma[i] == 0 {
			continue
		}
		x := float64((estimates[i]-float32(dots[i])*b.scale[i])*sketchMargin) / float64(unit*sigma[i])
		e.sum += x * x
		e.n++
	}
}

// widen multiplies sigma so that the mean square of the errors is at most 1.
func (e *squaredErrors) widen(sigma *[blockLen]float32) {
	if e.n == 0 || e.sum <= float64(e.n) {
		return
	}
	by := float32(math.Sqrt(e.sum / float64(e.n)))
	for i := range sigma {
		sigma[i] *= by
	}
}

// allPlaces are the places of a block.
var allPlaces = func() (all [blockLen]uint16) {
	for i := range all {
		all[i] = uint16(i)
	}
	return all
}()

// estimateCoarse sets estimates to the estimates of the vectors at places by their coarse
// codes. sums is for its use. centre is the score of the centre.
func (s *sketch) estimateCoarse(k kernel, estimates *[blockLen]float32, sums *[blockLen]int32, places []uint16, q *sketchQuery, centre float32) {
	k.coarse(sums[:], s.coarse, places, q.coarse)
	for i, at := range places {
		estimates[i] = centre + float32(s.byCoarse.factor[at]*(float32(sums[i])-q.coarseOffset))
	}
}

// coarsePortable sets sums to the products of query with the coarse codes at places. A
// product is the sum of u x q, where byte b of a code's 32-byte unit has the numbers u of
// coordinates b, 32+b and so on, in coarseBits each.
func coarsePortable(sums []int32, codes []byte, places []uint16, query []int8) {
	size := len(query) / coarseUnit * 32
	for i, at := range places {
		sum, code, by := int32(0), codes[int(at)*size:][:size], query
		for len(code) >= 32 && len(by) >= coarseUnit {
			for plane := range 8 / coarseBits {
				part := (*[32]int8)(by[32*plane:])
				for b, x := range (*[32]byte)(code) {
					sum += int32(x>>(coarseBits*plane)&(1<<coarseBits-1)) * int32(part[b])
				}
			}
			code, by = code[32:], by[coarseUnit:]
		}
		sums[i] = sum
	}
}

// score returns the score of the centre.
func (s *sketch) score(k kernel, q *query) float32 {
	// The low bytes are 0, so that each number is 256 times the code's.
	return float32(k.fine(q.int16, s.centre, noLow[:len(s.centre)])>>8) * *s.scale
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
			out[first+at] = centre + float32(s.bySign.factor[first+at]*(float32(q.slope*float32(sum))+q.offset))
		}
	}
}

// reaching appends the places whose estimate + spread x sigma is at least floor.
func reaching(k kernel, places []uint16, estimates, sigma *[blockLen]float32, spread, floor float32) []uint16 {
	var bitmap blockBits
	k.atLeast(&bitmap, estimates, sigma, spread, floor)
	return appendBits(places, bitmap[:])
}

// appendBits appends the places of the bits that are set.
func appendBits(places []uint16, bitmap []uint64) []uint16 {
	for word, b := range bitmap {
		for ; b != 0; b &= b - 1 {
			places = append(places, uint16(64*word+bits.TrailingZeros64(b)))
		}
	}
	return places
}

// atLeastPortable sets the bits of the vectors whose estimate + spread x sigma is at least
// floor.
func atLeastPortable(bits *blockBits, estimates, sigma *[blockLen]float32, spread, floor float32) {
	for word := range bits {
		var b uint64
		for i := range 64 {
			if at := 64*word + i; estimates[at]+float32(spread*sigma[at]) >= floor {
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
			if rows := b.rows.Load(); b.sketch.Load() == nil {
				b.sketch.Store(newSketch(b, rows.codes, snap.dim, snap.stride, s.kernel))
				runtime.KeepAlive(rows)
			}
		}
	}()
}

// full returns the blocks that will not change.
func (s *snapshot) full() []*block { return s.blocks[:s.n/blockLen] }
