package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// machine is a vector unit for which this file emits the kernels on rows.
type machine struct {
	name      string            // of the functions
	size      int               // bytes of a vector
	registers []reg.VecPhysical // constants take the last ones
	tile      int               // the most rows of a product
	// most is the number of rows of a call of body by rows. Their registers are slices of
	// this length.
	most int
	rows func(p operand.Mem, body func(suffix string, x []reg.GPVirtual))
	zero func(z reg.VecPhysical)
	// absolute sets z to the mask of the bits of a float32 without its sign.
	absolute func(z reg.VecPhysical)
	fold     func(op func(...operand.Op), z, t reg.VecPhysical)
	inverse  func(top, limit, inverse, t reg.VecPhysical) // limit/top, or 0 where top is 0; t is scratch
	// bytes and words store integers with saturation. z holds 64 bytes of them for bytes,
	// and a vector for words, which may change t.
	bytes func(z []reg.VecPhysical, to operand.Mem)
	words func(z, t reg.VecPhysical, to operand.Mem)
	// interleave prepares and returns the code that puts the words of odd, in the upper
	// halves, next to those of even.
	interleave func() func(odd, even reg.VecPhysical)
	// mask prepares the mask of the last vector of n numbers, and returns the code that
	// replaces the entries of z after them by those of other.
	mask func(n reg.GPVirtual, name string, last reg.VecPhysical) (blend func(other, z reg.VecPhysical))
	// geluConstants defines constants for gelu, puts the first five into registers, and returns
	// the operands of the coefficients that follow them.
	geluConstants func(values []float32) (in []reg.VecPhysical, coefficient func(i int) operand.Op)
	// whole sets w to v rounded. scale multiplies t by the power of two with exponent w.
	whole func(v, w, least reg.VecPhysical)
	scale func(w, t reg.VecPhysical)
}

// take returns the registers for n values of each row, and those for constants.
func (m machine) take(n, constants int) (values [][]reg.VecPhysical, last []reg.VecPhysical) {
	for i := range n {
		values = append(values, m.registers[i*m.most:(i+1)*m.most])
	}
	return values, m.registers[len(m.registers)-constants:]
}

// load broadcasts constants to registers.
func load(name string, values []float32, to []reg.VecPhysical) {
	table := constants(name+"Table", values)
	for i := range values {
		VBROADCASTSS(table.Offset(4*i), to[i])
	}
}

// eachVector loops i over the bytes of n float32s, a vector of size bytes at a
// time; n is in bytes and not zero.
func eachVector(label string, n reg.GPVirtual, size int, body func(i reg.GPVirtual)) {
	i := GP64()
	XORQ(i, i)
	Label(label)
	body(i)
	ADDQ(operand.U8(uint8(size)), i)
	CMPQ(i, n)
	JLT(operand.LabelRef(label))
}

func indexed(base, i reg.GPVirtual) operand.Mem { return operand.Mem{Base: base, Index: i, Scale: 1} }

// exp2Coefficients approximate 2^f on [-1/2, 1/2], after the constant 1,
// lowest power first: a minimax fit of the relative error (Lawson's
// iteration), which is 2e-7.
var exp2Coefficients = []float32{
	0.69314700365, 0.24022241, 0.055507343, 0.0096715661, 0.0013264659,
}

// softmax emits softmax or, with words, softmax16: the probabilities become float32s that sum
// to 1, or words that sum to 32767.
func (m machine) softmax(words bool) {
	name, like, over := "softmax"+m.name, "softmax", "each row"
	total := float32(1)
	if words {
		name, like, total = "softmax16"+m.name, "softmax16", 32767
		if m.most == 1 {
			over += ", and the words,"
		}
	}
	p := text(name, name+" is "+like+"; it overwrites "+over+" up to a multiple of "+map[int]string{32: "8", 64: "16"}[m.size]+".")
	n := field(p, raN)
	values, c := m.take(5, 6+len(exp2Coefficients))
	blend := m.mask(n, name, c[0])
	ADDQ(operand.U8(uint8(m.size/4-1)), n)
	ANDQ(operand.I8(int8(-m.size/4)), n)
	SHLQ(operand.U8(2), n)
	// Entries past the scores count as -1e30, whose exponential is 0. An infinity would
	// give NaN when the argument is reduced.
	load(name, append([]float32{-1e30, math.Log2E, 1, -126, total}, exp2Coefficients...), c[1:])
	absent, log2e, one, least, sumOfAll, coefficient := c[1], c[2], c[3], c[4], c[5], c[6:]
	var q, ldq reg.GPVirtual
	to := []reg.GPVirtual{GP64(), GP64()}
	if words {
		q, ldq = field(p, raQ), field(p, raLdq)
	}
	m.rows(p, func(suffix string, x []reg.GPVirtual) {
		top, sum, t, v, w := values[0], values[1], values[2], values[3], values[4]
		for r := range x {
			last := operand.Mem{Base: x[r], Index: n, Scale: 1, Disp: -m.size}
			VMOVUPS(last, v[r])
			blend(absent, v[r])
			VMOVUPS(v[r], last)
			VMOVAPS(v[r], top[r])
			m.zero(sum[r])
		}
		eachVector("max"+suffix, n, m.size, func(i reg.GPVirtual) {
			for r := range x {
				VMAXPS(indexed(x[r], i), top[r], top[r])
			}
		})
		for r := range x {
			m.fold(VMAXPS, top[r], t[r])
			VMULPS(log2e, top[r], top[r])
		}
		eachVector("exp"+suffix, n, m.size, func(i reg.GPVirtual) {
			for r := range x {
				VMOVUPS(indexed(x[r], i), v[r])
				VFMSUB213PS(top[r], log2e, v[r])
				m.whole(v[r], w[r], least)
				VSUBPS(w[r], v[r], v[r])
				polynomial(v[r], t[r], len(exp2Coefficients), func(i int) operand.Op { return coefficient[i] })
				VFMADD213PS(one, v[r], t[r])
				m.scale(w[r], t[r])
				VADDPS(t[r], sum[r], sum[r])
				VMOVUPS(t[r], indexed(x[r], i))
			}
		})
		for r := range x {
			m.fold(VADDPS, sum[r], t[r])
			VDIVPS(sum[r], sumOfAll, sum[r])
			if words {
				MOVQ(q, to[r])
				ADDQ(ldq, q)
			}
		}
		eachVector("divide"+suffix, n, m.size, func(i reg.GPVirtual) {
			for r := range x {
				VMULPS(indexed(x[r], i), sum[r], t[r])
				if !words {
					VMOVUPS(t[r], indexed(x[r], i))
					continue
				}
				VCVTPS2DQ(t[r], t[r])
				m.words(t[r], v[r], operand.Mem{Base: to[r]})
				ADDQ(operand.U8(uint8(m.size/2)), to[r])
			}
		})
	})
}

func (m machine) quantize() {
	name := "quantize" + m.name
	p := text(name, name+" is quantize.")
	n := field(p, raN)
	SHLQ(operand.U8(2), n)
	q, ldq := field(p, raQ), field(p, raLdq)
	scale, low := field(p, raScale), field(p, raMin)
	values, c := m.take(5, 2)
	load(name, []float32{1.0 / 255, 1}, c)
	unit, one := c[0], c[1]
	to := []reg.GPVirtual{GP64(), GP64()}
	m.rows(p, func(suffix string, x []reg.GPVirtual) {
		least, high, step, inverse, t := values[0], values[1], values[2], values[3], m.registers[4*m.most:]
		for r := range x {
			VMOVUPS(operand.Mem{Base: x[r]}, least[r])
			VMOVAPS(least[r], high[r])
		}
		eachVector("range"+suffix, n, m.size, func(i reg.GPVirtual) {
			for r := range x {
				VMOVUPS(indexed(x[r], i), t[r])
				VMINPS(t[r], least[r], least[r])
				VMAXPS(t[r], high[r], high[r])
			}
		})
		for r := range x {
			m.fold(VMINPS, least[r], t[r])
			m.fold(VMAXPS, high[r], t[r])
			VSUBPS(least[r], high[r], step[r])
			VMULPS(unit, step[r], step[r])
			m.inverse(step[r], one, inverse[r], t[r]) // a constant row has step 0 and bytes 0
			VMOVSS(least[r].AsX(), operand.Mem{Base: low})
			VMOVSS(step[r].AsX(), operand.Mem{Base: scale})
			ADDQ(operand.U8(4), low)
			ADDQ(operand.U8(4), scale)
			MOVQ(q, to[r])
			ADDQ(ldq, q)
		}
		eachVector("bytes"+suffix, n, 64, func(i reg.GPVirtual) {
			for r := range x {
				z := t[r : r+64/m.size]
				for j := range z {
					VMOVUPS(indexed(x[r], i).Offset(m.size*j), z[j])
					VSUBPS(least[r], z[j], z[j])
					VMULPS(inverse[r], z[j], z[j])
					VCVTPS2DQ(z[j], z[j])
				}
				m.bytes(z, operand.Mem{Base: to[r]})
				ADDQ(operand.U8(16), to[r])
			}
		})
	})
}

func (m machine) norm() {
	name := "norm" + m.name
	p := text(name, name+" is norm.")
	n := field(p, raN)
	SHLQ(operand.U8(2), n)
	weight, bias := field(p, raWeight), field(p, raBias)
	inputWeight, inputBias := field(p, raInputWeight), field(p, raInputBias)
	first, second := field(p, raResidual), GP64()
	values, c := m.take(4, 3)
	one, epsilon, inverse := c[0], c[1], c[2]
	load(name, []float32{1}, c)
	VBROADCASTSS(p.Offset(raEpsilon), epsilon)
	VBROADCASTSS(p.Offset(raInverse), inverse)
	m.rows(p, func(suffix string, x []reg.GPVirtual) {
		h := []reg.GPVirtual{first, second}[:len(x)]
		if len(x) == 2 {
			MOVQ(first, second)
			ADDQ(p.Offset(raLdr), second)
		}
		mean, squares, t, v := values[0], values[1], values[2], values[3]
		for r := range x {
			m.zero(mean[r])
			m.zero(squares[r])
		}
		eachVector("sum"+suffix, n, m.size, func(i reg.GPVirtual) {
			for r := range x {
				VMOVUPS(indexed(x[r], i), v[r])
				VADDPS(indexed(h[r], i), v[r], v[r])
				VMOVUPS(v[r], indexed(h[r], i))
				VADDPS(v[r], mean[r], mean[r])
			}
		})
		for r := range x {
			m.fold(VADDPS, mean[r], t[r])
			VMULPS(inverse, mean[r], mean[r])
		}
		eachVector("squares"+suffix, n, m.size, func(i reg.GPVirtual) {
			for r := range x {
				VMOVUPS(indexed(h[r], i), v[r])
				VSUBPS(mean[r], v[r], v[r])
				VFMADD231PS(v[r], v[r], squares[r])
			}
		})
		for r := range x {
			m.fold(VADDPS, squares[r], t[r])
			VFMADD213PS(epsilon, inverse, squares[r])
			VSQRTPS(squares[r], squares[r])
			VDIVPS(squares[r], one, squares[r])
		}
		eachVector("scale"+suffix, n, m.size, func(i reg.GPVirtual) {
			for r := range x {
				VMOVUPS(indexed(h[r], i), v[r])
				VSUBPS(mean[r], v[r], v[r])
				VMULPS(squares[r], v[r], v[r])
				VMOVUPS(indexed(weight, i), t[r])
				VFMADD213PS(indexed(bias, i), v[r], t[r])
				VMOVUPS(t[r], indexed(h[r], i))
				VMOVUPS(indexed(inputWeight, i), t[r])
				VFMADD213PS(indexed(inputBias, i), v[r], t[r])
				VMOVUPS(t[r], indexed(x[r], i))
			}
		})
		for range x {
			ADDQ(p.Offset(raLdr), first)
		}
	})
}

// packValues emits packValues for panels of two vectors.
func (m machine) packValues(name string) {
	p := text(name, name+" is packValues.")
	tops, inverses, evens, odds := m.registers[0:2], m.registers[2:4], m.registers[4:6], m.registers[6:8]
	_, c := m.take(0, 4)
	limit, unit, absolute, zero := c[0], c[1], c[2], c[3] // unit is the scale of the largest value 1
	load(name, []float32{32767, 1.0 / 32767 / 32767}, c)
	m.absolute(absolute)
	m.zero(zero)
	interleave := m.interleave()
	x, ld, n := field(p, haX), field(p, haLd), field(p, haN)
	out, scale := field(p, haOut), field(p, haScale)
	at, count := GP64(), GP64()
	offset := func(base reg.GPVirtual, j int) operand.Mem { return operand.Mem{Base: base, Disp: m.size * j} }

	Label("panel")
	MOVQ(x, at)
	MOVQ(p.Offset(haRows), count)
	for _, z := range tops {
		m.zero(z)
	}
	Label("largest")
	for j := range 2 {
		VANDPS(offset(at, j), absolute, odds[j])
		VMAXPS(odds[j], tops[j], tops[j])
	}
	ADDQ(ld, at)
	DECQ(count)
	JNE(operand.LabelRef("largest"))
	for j, top := range tops {
		m.inverse(top, limit, inverses[j], odds[j])
		VMULPS(unit, top, top)
		VMOVUPS(top, offset(scale, j))
	}
	MOVQ(x, at)
	MOVQ(p.Offset(haRows), count)
	row := func(to []reg.VecPhysical) {
		for j, z := range to {
			VMULPS(offset(at, j), inverses[j], z)
			VCVTPS2DQ(z, z)
		}
		ADDQ(ld, at)
	}
	store := func(odd ...reg.VecPhysical) {
		for j, even := range evens {
			interleave(odd[j], even)
			VMOVUPS(even, offset(out, j))
		}
		ADDQ(operand.U32(uint32(2*m.size)), out)
	}
	SUBQ(operand.U8(2), count)
	JLT(operand.LabelRef("last"))
	Label("pair")
	row(evens)
	row(odds)
	for _, z := range odds {
		VPSLLD(operand.U8(16), z, z)
	}
	store(odds...)
	SUBQ(operand.U8(2), count)
	JGE(operand.LabelRef("pair"))
	Label("last")
	ADDQ(operand.U8(2), count)
	JEQ(operand.LabelRef("done"))
	row(evens)
	store(zero, zero)
	Label("done")
	ADDQ(operand.U32(uint32(2*m.size)), scale)
	ADDQ(operand.U32(uint32(2*m.size)), x)
	SUBQ(operand.U8(uint8(m.size/2)), n)
	JNE(operand.LabelRef("panel"))
	VZEROUPPER()
	RET()
}
