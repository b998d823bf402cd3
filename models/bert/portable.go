package bert

import (
	"math"
	"unsafe"
)

// portable returns the kernel in plain Go, for machines without AVX2 and as
// the one the others are compared with.
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

// floats is row i of n float32s at p, rows ld bytes apart.
func floats(p *float32, ld, i, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(p), i*ld)), n)
}

// product8Go keeps two columns in the halves of a 64-bit word, so that one
// multiplication serves both. Weights are made non-negative by +128, which
// the sum of the activations takes back. Halves cannot overflow: 255*255
// times a depth below 2^16 stays under 2^32.
func product8Go(p *product8) {
	const cols = 4
	w := unsafe.Slice((*uint32)(unsafe.Pointer(p.w)), p.depth)
	wscale, wsum, bias := floats(p.wscale, 0, 0, cols), floats(p.wsum, 0, 0, cols), floats(p.bias, 0, 0, cols)
	for i := range p.rows * p.tiles {
		a := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(p.a), i*p.lda)), p.depth)
		var lo, hi, sum uint64
		for k := 0; k+4 <= len(a) && k+4 <= len(w); k += 4 {
			// Four columns of four weights each: word j holds column j.
			w0, w1, w2, w3 := w[k]^0x80808080, w[k+1]^0x80808080, w[k+2]^0x80808080, w[k+3]^0x80808080
			for s := 0; s < 4; s++ {
				q := uint64(a[k+s])
				sum += q
				lo += q * (uint64(w0&0xff) | uint64(w1&0xff)<<32)
				hi += q * (uint64(w2&0xff) | uint64(w3&0xff)<<32)
				w0, w1, w2, w3 = w0>>8, w1>>8, w2>>8, w3>>8
			}
		}
		scale, low := floats(p.scale, 4, i, 1)[0], floats(p.min, 4, i, 1)[0]
		c := floats(p.c, p.ldc, i, cols)
		for j, acc := range [cols]uint64{lo & 0xffffffff, lo >> 32, hi & 0xffffffff, hi >> 32} {
			exact := int64(acc) - 128*int64(sum)
			c[j] = float32(exact)*wscale[j]*scale + (low*wsum[j] + bias[j])
		}
	}
}

func product32Go(p *product32) {
	const cols = 32
	for i := range p.rows * p.tiles {
		a := floats(p.a, p.lda, i, p.depth)
		var acc [cols]float32
		for k, v := range a {
			for j, b := range floats(p.b, p.ldb, k, cols) {
				acc[j] += v * b
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

func normGo(p *rowsArgs) {
	weight, bias := floats(p.weight, 0, 0, p.n), floats(p.bias, 0, 0, p.n)
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
			h[j] = h[j]*inverse*weight[j] + bias[j]
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
