package bert

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// portable returns the kernel in plain Go, for machines without AVX2 or NEON's dot
// products. Tests compare the other kernels with it.
func portable() *kernel {
	return &kernel{
		name: "portable",
		cols: 4, rows: 4, fcols: 32, frows: 4, group: 1,
		product8:  product8Go,
		product32: product32Go,
		softmax:   softmaxGo,
		gelu:      geluGo,
		quantize:  quantizeGo,
		norm:      normGo,
		transpose: transposeGo,
	}
}

// floats returns row i of n float32s at p, where rows are ld bytes apart.
func floats(p *float32, ld, i, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(p), i*ld)), n)
}

// product8Go keeps two columns in the halves of a 64-bit word, so that one multiplication
// computes both. It adds 128 to make the weights non-negative, and corrects the result by
// the sum of the activations. Halves cannot overflow: 255*255 times a depth up to 2^16 is
// less than 2^32.
func product8Go(p *product8) {
	const cols = 4
	w := unsafe.Slice((*uint32)(unsafe.Pointer(p.w)), p.depth)
	wscale, wsum, bias := floats(p.wscale, 0, 0, cols), floats(p.wsum, 0, 0, cols), floats(p.bias, 0, 0, cols)
	rows := p.rows * p.tiles
	for i := 0; i < rows; i += 2 {
		// The last of an odd number of rows is multiplied twice.
		j := min(i+1, rows-1)
		a := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(p.a), i*p.lda)), p.depth)
		b := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(p.a), j*p.lda)), p.depth)
		aLow, aHigh, bLow, bHigh := dots4(a, b, w)
		for _, r := range [2]struct {
			row       int
			x         []byte
			low, high uint64
		}{{i, a, aLow, aHigh}, {j, b, bLow, bHigh}} {
			offset := 128 * int64(sumBytes(r.x))
			scale, low := floats(p.scale, 4, r.row, 1)[0], floats(p.min, 4, r.row, 1)[0]
			c := floats(p.c, p.ldc, r.row, cols)
			for k, sum := range [cols]uint64{r.low & 0xffffffff, r.low >> 32, r.high & 0xffffffff, r.high >> 32} {
				c[k] = float32(int64(sum)-offset)*wscale[k]*scale + (low*wsum[k] + bias[k])
			}
		}
	}
}

// dots4 returns the sums of products of a and of b with the four columns of
// w plus 128, two to a word.
func dots4(a, b []byte, w []uint32) (aLow, aHigh, bLow, bHigh uint64) {
	for len(a) >= 4 && len(b) >= 4 && len(w) >= 4 {
		// Word j holds four weights of column j: the bytes of two columns are
		// set 32 bits apart.
		w01 := (uint64(w[0]) | uint64(w[1])<<32) ^ 0x8080808080808080
		w23 := (uint64(w[2]) | uint64(w[3])<<32) ^ 0x8080808080808080
		const mask = 0x000000ff000000ff
		x, y := uint64(a[0]), uint64(b[0])
		u, v := w01&mask, w23&mask
		aLow, aHigh, bLow, bHigh = aLow+x*u, aHigh+x*v, bLow+y*u, bHigh+y*v
		x, y = uint64(a[1]), uint64(b[1])
		u, v = w01>>8&mask, w23>>8&mask
		aLow, aHigh, bLow, bHigh = aLow+x*u, aHigh+x*v, bLow+y*u, bHigh+y*v
		x, y = uint64(a[2]), uint64(b[2])
		u, v = w01>>16&mask, w23>>16&mask
		aLow, aHigh, bLow, bHigh = aLow+x*u, aHigh+x*v, bLow+y*u, bHigh+y*v
		x, y = uint64(a[3]), uint64(b[3])
		u, v = w01>>24&mask, w23>>24&mask
		aLow, aHigh, bLow, bHigh = aLow+x*u, aHigh+x*v, bLow+y*u, bHigh+y*v
		a, b, w = a[4:], b[4:], w[4:]
	}
	return
}

// sumBytes adds bytes eight at a time into four lanes of 16 bits, which hold
// 128 words' worth.
func sumBytes(x []byte) (sum uint64) {
	const mask = 0x00ff00ff00ff00ff
	for len(x) >= 8 {
		var lanes uint64
		for n := min(len(x)/8, 128); n > 0; n-- {
			v := binary.LittleEndian.Uint64(x)
			lanes += v&mask + v>>8&mask
			x = x[8:]
		}
		sum += lanes&0xffff + lanes>>16&0xffff + lanes>>32&0xffff + lanes>>48
	}
	for _, v := range x {
		sum += uint64(v)
	}
	return sum
}

// product32Go adds rows of the panel four at a time, so that a result is
// loaded and stored once for four products.
func product32Go(p *product32) {
	const cols = 32
	for i := range p.rows * p.tiles {
		a := floats(p.a, p.lda, i, p.depth)
		var acc [cols]float32
		k := 0
		for ; k+4 <= len(a); k += 4 {
			b0, b1 := (*[cols]float32)(floats(p.b, p.ldb, k, cols)), (*[cols]float32)(floats(p.b, p.ldb, k+1, cols))
			b2, b3 := (*[cols]float32)(floats(p.b, p.ldb, k+2, cols)), (*[cols]float32)(floats(p.b, p.ldb, k+3, cols))
			a0, a1, a2, a3 := a[k], a[k+1], a[k+2], a[k+3]
			for j := range acc {
				acc[j] += a0*b0[j] + a1*b1[j] + (a2*b2[j] + a3*b3[j])
			}
		}
		for ; k < len(a); k++ {
			for j, b := range floats(p.b, p.ldb, k, cols) {
				acc[j] += a[k] * b
			}
		}
		copy(floats(p.c, p.ldc, i, cols), acc[:])
	}
}

func softmaxGo(p *rowsArgs) {
	for i := range p.rows {
		x := floats(p.x, p.ld, i, p.n)
		top := x[0]
		for _, v := range x {
			top = max(top, v)
		}
		var sum float32
		for j, v := range x {
			x[j] = float32(math.Exp(float64(v - top)))
			sum += x[j]
		}
		sum = 1 / sum
		for j := range x {
			x[j] *= sum
		}
	}
}

func geluGo(p *rowsArgs) {
	for i := range p.rows {
		x := floats(p.x, p.ld, i, p.n)
		for j, v := range x {
			x[j] = geluPolynomial(v)
		}
	}
}

// geluLimit and geluCoefficients approximate Phi(x) - 1/2 by x times a
// polynomial in u = 2x²/limit² - 1 on |x| <= limit, lowest power first. The
// fit is a minimax fit (Lawson's iteration) of the error weighted by x²; with
// x clamped to the limit, gelu is within 2e-6 of x*Phi(x) for |x| <= 9 in
// float32.
const geluLimit = 5

var geluCoefficients = [13]float32{
	0.141363785,
	-0.0702966526,
	0.0515214205,
	-0.0404329486,
	0.0314262286,
	-0.0233367309,
	0.0164976567,
	-0.0109732319,
	0.00616542948,
	-0.00291567342,
	0.00200186134,
	-0.00151415356,
	0.000492969062,
}

func geluPolynomial(x float32) float32 {
	c := max(-geluLimit, min(geluLimit, x))
	u := c*c*(2.0/(geluLimit*geluLimit)) - 1
	p := geluCoefficients[len(geluCoefficients)-1]
	for i := len(geluCoefficients) - 2; i >= 0; i-- {
		p = p*u + geluCoefficients[i]
	}
	return x * (c*p + 0.5)
}

func quantizeGo(p *rowsArgs) {
	for i := range p.rows {
		x := floats(p.x, p.ld, i, p.n)
		low, high := x[0], x[0]
		for _, v := range x {
			low, high = min(low, v), max(high, v)
		}
		step := (high - low) * (1.0 / 255)
		inverse := float32(0)
		if step > 0 {
			inverse = 1 / step
		}
		q := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(p.q), i*p.ldq)), p.n)
		for j, v := range x {
			q[j] = byte(min(255, max(0, int32(math.RoundToEven(float64((v-low)*inverse))))))
		}
		floats(p.scale, 4, i, 1)[0] = step
		floats(p.min, 4, i, 1)[0] = low
	}
}

// quantizeSigned is quantize for products of signed bytes: x = scale*(q-128) + min,
// with a minimum larger by 128 steps.
func quantizeSigned(p *rowsArgs) {
	quantizeGo(p)
	for i := range p.rows {
		q := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(p.q), i*p.ldq)), p.n)
		for j := range q {
			q[j] ^= 0x80
		}
		floats(p.min, 4, i, 1)[0] += 128 * floats(p.scale, 4, i, 1)[0]
	}
}

func normGo(p *rowsArgs) {
	weight, bias := floats(p.weight, 0, 0, p.n), floats(p.bias, 0, 0, p.n)
	inputWeight, inputBias := floats(p.inputWeight, 0, 0, p.n), floats(p.inputBias, 0, 0, p.n)
	for i := range p.rows {
		x, h := floats(p.x, p.ld, i, p.n), floats(p.residual, p.ldr, i, p.n)
		var sum float32
		for j, v := range x {
			h[j] += v
			sum += h[j]
		}
		mean := sum * p.inverse
		var squares float32
		for j := range h {
			h[j] -= mean
			squares += h[j] * h[j]
		}
		inverse := float32(1 / math.Sqrt(float64(squares*p.inverse+p.epsilon)))
		for j := range h {
			unit := h[j] * inverse
			h[j] = unit*weight[j] + bias[j]
			x[j] = unit*inputWeight[j] + inputBias[j]
		}
	}
}

func transposeGo(p *transposeArgs) {
	panels := (p.rows + p.cols - 1) / p.cols
	out := unsafe.Slice(p.out, panels*p.n*p.cols)
	for i := range panels * p.cols {
		at := i/p.cols*p.n*p.cols + i%p.cols
		if i >= p.rows {
			for d := range p.n {
				out[at+d*p.cols] = 0
			}
			continue
		}
		for d, v := range floats(p.x, p.ld, i, p.n) {
			out[at+d*p.cols] = v
		}
	}
}
