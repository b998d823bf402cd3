package qdranttest

import (
	"math"
	"slices"
)

// code is a vector in the engine's scalar quantisation: a byte of 0 to 127 a
// number, value = alpha*byte + offset.
type code struct {
	bytes []uint8
	sum   int // of bytes
}

// quantiser holds the range of values that the bytes represent. It is recomputed whenever
// the collection has doubled, as the engine's optimiser rebuilds segments.
type quantiser struct {
	alpha, offset float32
	calibrated    int // points at the last calibration
}

// calibrate sets the range to the quantile of all numbers. The caller must hold c.mu.
func (c *collection) calibrate() {
	var all []float32
	for _, p := range c.points {
		all = append(all, p.dense...)
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	cut := 0
	if q := c.created.QuantizationConfig.GetScalar().Quantile; q != nil && *q < 1 && len(c.points) >= 127 {
		cut = min((len(all)-1)/2, int(float32(len(all))*(1-*q)/2))
	}
	low, high := all[cut], all[len(all)-1-cut]
	c.alpha, c.offset = max((high-low)/127, math.SmallestNonzeroFloat32), low
	c.calibrated = len(c.points)
	for _, p := range c.points {
		p.code = c.encode(p.dense)
	}
}

// put adds or replaces a point. The caller must hold c.mu.
func (c *collection) put(p *point) {
	c.points[p.id] = p
	if !c.quantised || p.dense == nil {
		return
	}
	if len(c.points) >= 2*c.calibrated {
		c.calibrate()
		return
	}
	p.code = c.encode(p.dense)
}

func (q *quantiser) encode(v []float32) *code {
	out := &code{bytes: make([]uint8, len(v))}
	for i, x := range v {
		b := uint8(math.Round(float64(min(max((x-q.offset)/q.alpha, 0), 127))))
		out.bytes[i] = b
		out.sum += int(b)
	}
	return out
}

// approximate returns the inner product of two codes: with x = alpha*a + offset, the sum
// of (alpha*a+offset)(alpha*b+offset).
func (q *quantiser) approximate(a, b *code) float32 {
	sum := 0
	for i, x := range a.bytes {
		sum += int(x) * int(b.bytes[i])
	}
	return q.alpha*q.alpha*float32(sum) + q.alpha*q.offset*float32(a.sum+b.sum) + q.offset*q.offset*float32(len(a.bytes))
}
