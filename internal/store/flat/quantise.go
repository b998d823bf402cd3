package flat

import "math"

// strideUnit is the multiple in bytes to which the length of a code is rounded up: a cache
// line and an AVX-512 register.
const strideUnit = 64

func strideOf(dim int) int { return roundUp(dim, strideUnit) }

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// codeZero is the code of 0. Codes are unsigned because one operand of the 8-bit dot
// product of AVX-512 VNNI is. A kernel returns the sum of code x query, from which the
// caller subtracts codeZero x the sum of the query.
const codeZero = 128

// A vector has 16 bits a coordinate: x = scale x n / 256 with scale = max|x| / 127 and n
// from -32512 to 32512. Its code is n / 256, rounded, and its low byte the remainder, from
// -128 to 127. The error of a coordinate is at most scale / 512, which changes a cosine of
// MiniLM vectors by some 2e-6.

// maxNumber is the largest n.
const maxNumber = 127 << 8

// fine returns the numbers n of v, and its scale.
func fine(v []float32) (n []int16, scale float32) {
	var most float32
	for _, x := range v {
		most = max(most, x, -x)
	}
	if most == 0 {
		most = 1 // unreachable: vectors have unit length
	}
	n = make([]int16, len(v))
	for i, x := range v {
		n[i] = int16(math.RoundToEven(float64(x) * maxNumber / float64(most)))
	}
	return n, most / 127
}

// quantise writes the codes of v and, unless low is nil, its low bytes. It returns the
// scale.
func quantise(codes, low []byte, v []float32) (scale float32) {
	numbers, scale := fine(v)
	for i, n := range numbers {
		codes[i] = byte((int(n)+128)>>8 + codeZero)
		if low != nil {
			low[i] = byte(n)
		}
	}
	return scale
}

// number returns the n of a coordinate.
func number(code, low byte) int32 { return (int32(code)-codeZero)<<8 + int32(int8(low)) }

// dequantise sets v to the vector that codes alone describe.
func dequantise(v []float32, codes []byte, scale float32) {
	for i, c := range codes[:len(v)] {
		v[i] = float32(int(c)-codeZero) * scale
	}
}

// restore returns the vector with these codes and low bytes.
func restore(codes, low []byte, scale float32) []float32 {
	v := make([]float32, len(low))
	for i := range v {
		v[i] = float32(float64(scale) * float64(number(codes[i], low[i])) / 256)
	}
	return v
}

// fineQuery is a query in 16 bits a coordinate.
type fineQuery struct {
	numbers []int16
	scale   float64 // of a number
}

func newFineQuery(v []float32) *fineQuery {
	numbers, scale := fine(v)
	return &fineQuery{numbers, float64(scale) / 256}
}

// cosine returns the cosine of the query with the vector of these codes and low bytes.
func (q *fineQuery) cosine(k kernel, codes, low []byte, scale float32) float64 {
	return float64(k.fine(q.numbers, codes, low)) * q.scale * float64(scale) / 256
}

// finePortable returns the dot product of the query's numbers and those of a vector.
func finePortable(query []int16, codes, low []byte) (sum int64) {
	codes, low = codes[:len(query)], low[:len(query)]
	i := 0
	for ; i+2 <= len(query); i += 2 { // two products are below 2^31
		sum += int64(int32(query[i])*number(codes[i], low[i]) + int32(query[i+1])*number(codes[i+1], low[i+1]))
	}
	if i < len(query) {
		sum += int64(int32(query[i]) * number(codes[i], low[i]))
	}
	return sum
}

// query is a quantised query in the forms that kernels need. It is padded with zeros to
// the stride, so that the padding of codes does not count.
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
	q.scale = quantise(codes, nil, v)
	for i, c := range codes {
		x := int16(c) - codeZero
		q.int8[i], q.int16[i] = int8(x), x
		q.bias += codeZero * int32(x)
	}
	return q
}
