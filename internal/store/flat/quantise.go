package flat

import "math"

// strideUnit is what the length of a code is rounded up to, in bytes: a cache
// line and an AVX-512 register.
const strideUnit = 64

// codeZero is the code of 0. Codes are unsigned because the 8-bit dot product of
// AVX-512 VNNI takes one unsigned side; a kernel returns the sum of code x
// query, and codeZero x the sum of the query is taken off afterwards.
const codeZero = 128

// quantise writes the codes of v, round(x / scale) + codeZero with scale =
// max|x| / 127, and returns the scale.
func quantise(codes []byte, v []float32) (scale float32) {
	var top float32
	for _, x := range v {
		top = max(top, x, -x)
	}
	if top == 0 {
		top = 1 // unreachable: vectors have unit length
	}
	inverse := 127 / top
	for i, x := range v {
		codes[i] = byte(int32(math.RoundToEven(float64(x*inverse))) + codeZero)
	}
	return top / 127
}

// dequantise writes the numbers that codes stand for, len(v) of them.
func dequantise(v []float32, codes []byte, scale float32) {
	for i, c := range codes[:len(v)] {
		v[i] = float32(int(c)-codeZero) * scale
	}
}

// query is a quantised query in the forms the kernels take, padded with zeros
// to the stride, so that what a code is padded with does not count.
type query struct {
	int8  []int8
	int16 []int16
	scale float32
	// bias is codeZero x the sum of the query.
	bias int32
}

func newQuery(v []float32, stride int) *query {
	codes := make([]byte, len(v))
	q := &query{int8: make([]int8, stride), int16: make([]int16, stride)}
	q.scale = quantise(codes, v)
	for i, c := range codes {
		x := int16(c) - codeZero
		q.int8[i], q.int16[i] = int8(x), x
		q.bias += codeZero * int32(x)
	}
	return q
}
