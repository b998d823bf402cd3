package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Tiles of the AVX2 kernel: 8 rows of 8 columns for bytes, 6 rows of 16 for
// floats.
const (
	tileRows8AVX2  = 8
	tileRows32AVX2 = 6
)

// ymm are the 16 registers of AVX2. The allocator of avo would also use the 16
// that only AVX-512 has.
var ymm = []reg.VecPhysical{
	reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
	reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
}

func avx2() {
	product8AVX2()
	product32AVX2()
	product16AVX2()
	packWordsAVX2()
	packValuesAVX2()
	softmaxAVX2("softmaxAVX2", "softmaxAVX2 is softmax; it overwrites each row up to a multiple of 8.", false)
	softmaxAVX2("softmax16AVX2", "softmax16AVX2 is softmax16; it overwrites each row, and the words, up to a multiple of 8.", true)
	geluAVX2()
	quantizeAVX2()
	normAVX2()
}

// repeated defines constants, each repeated to fill a vector of 32 bytes, and
// returns the address of constant i.
func repeated(name string, values ...float32) func(i int) operand.Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i, v := range values {
		for j := range 8 {
			DATA(32*i+4*j, operand.F32(v))
		}
	}
	return func(i int) operand.Mem { return m.Offset(32 * i) }
}

func product8AVX2() {
	p := text("product8AVX2", "product8AVX2 is product8 with VPMADDUBSW, two of them added in 16 bits: panels of 8 columns, tiles of up to 8 rows.")
	ones := ymm[15]
	MOVQ(operand.U32(0x00010001), reg.RCX)
	VMOVD(reg.ECX, reg.X15)
	VPBROADCASTD(reg.X15, ones)
	b := ymm[8:10]
	bytesProduct(p, tileRows8AVX2, 128, func(rows int) {
		for i := range rows {
			VPXOR(ymm[i], ymm[i], ymm[i])
		}
	}, func(rows int, at rowPointers, w reg.GPVirtual) {
		for s := 0; s < 4; s += 2 {
			for j := range 2 {
				VMOVDQU(operand.Mem{Base: w, Disp: 32 * (s + j)}, b[j])
			}
			for r := range rows {
				x, y := ymm[10+2*(r%2)], ymm[11+2*(r%2)]
				VPBROADCASTD(at.row(r, 4*s), x)
				VPBROADCASTD(at.row(r, 4*s+4), y)
				VPMADDUBSW(b[0], x, x)
				VPMADDUBSW(b[1], y, y)
				VPADDW(x, y, x)
				VPMADDWD(ones, x, x)
				VPADDD(x, ymm[r], ymm[r])
			}
		}
	}, func(rows int, c, ldc, scale, low reg.GPVirtual) {
		wscale, wsum, bias := field(p, p8Wscale), field(p, p8Wsum), field(p, p8Bias)
		VMOVUPS(operand.Mem{Base: wscale}, ymm[8])
		VMOVUPS(operand.Mem{Base: wsum}, ymm[9])
		VMOVUPS(operand.Mem{Base: bias}, ymm[10])
		for r := range rows {
			VBROADCASTSS(operand.Mem{Base: low, Disp: 4 * r}, ymm[11])
			VBROADCASTSS(operand.Mem{Base: scale, Disp: 4 * r}, ymm[12])
			VFMADD213PS(ymm[10], ymm[9], ymm[11])
			VCVTDQ2PS(ymm[r], ymm[r])
			VMULPS(ymm[8], ymm[r], ymm[r])
			VFMADD213PS(ymm[11], ymm[12], ymm[r])
			VMOVUPS(ymm[r], operand.Mem{Base: c})
			ADDQ(ldc, c)
		}
	})
}

func product32AVX2() {
	p := text("product32AVX2", "product32AVX2 is product32 with panels of 16 columns and tiles of up to 6 rows.")
	product(p, tileRows32AVX2, vectors{
		size: 32, acc: ymm[:12], b: ymm[12:14], v: ymm[14:16],
		zero:     func(z reg.VecPhysical) { VXORPS(z, z, z) },
		multiply: func(b, v, acc reg.VecPhysical) { VFMADD231PS(b, v, acc) },
		finish:   func(operand.Mem, int, reg.VecPhysical) {},
	})
}

func fold256(op func(...operand.Op), z, t reg.VecPhysical) {
	VPERM2F128(operand.U8(1), z, z, t)
	op(t, z, z)
	for _, imm := range []uint8{0x4e, 0xb1} {
		VPERMILPS(operand.U8(imm), z, t)
		op(t, z, z)
	}
}

func softmaxAVX2(name, doc string, words bool) {
	p := text(name, doc)
	n, tail := field(p, raN), GP64()
	// The mask of the last vector is a window on eight words of ones and eight
	// of zeros. It begins 32 bytes after the start, less four for each score.
	MOVQ(n, tail)
	DECQ(tail)
	ANDQ(operand.U8(7), tail)
	NEGQ(tail)
	masks := GLOBL(name+"Mask", RODATA|NOPTR)
	for i := range 16 {
		bits := uint32(0xffffffff)
		if i >= 8 {
			bits = 0
		}
		DATA(4*i, operand.U32(bits))
	}
	base := GP64()
	LEAQ(masks.Offset(28), base)
	mask := ymm[15]
	VMOVUPS(operand.Mem{Base: base, Index: tail, Scale: 4}, mask)
	ADDQ(operand.U8(7), n)
	ANDQ(operand.I8(-8), n)
	SHLQ(operand.U8(2), n)
	var total float32 = 1
	if words {
		total = 32767
	}
	table := repeated(name+"Table", append([]float32{-1e30, math.Log2E, 1, -126, total}, exp2Coefficients...)...)
	var q, ldq, to reg.GPVirtual
	if words {
		q, ldq, to = field(p, raQ), field(p, raLdq), GP64()
	}
	log2e, one, least := ymm[14], ymm[13], ymm[12]
	VMOVUPS(table(1), log2e)
	VMOVUPS(table(2), one)
	VMOVUPS(table(3), least)
	coefficient := ymm[7:12]
	for i := range exp2Coefficients {
		VMOVUPS(table(5+i), coefficient[i])
	}
	top, sum, t, v, w := ymm[0], ymm[1], ymm[2], ymm[3], ymm[4]
	eachRow(p, func(x reg.GPVirtual) {
		last := operand.Mem{Base: x, Index: n, Scale: 1, Disp: -32}
		VMOVUPS(table(0), v)
		VBLENDVPS(mask, last, v, v)
		VMOVUPS(v, last)
		VMOVAPS(v, top)
		eachVector("max", n, 32, func(i reg.GPVirtual) { VMAXPS(indexed(x, i), top, top) })
		fold256(VMAXPS, top, t)
		VMULPS(log2e, top, top)
		VXORPS(sum, sum, sum)
		eachVector("exp", n, 32, func(i reg.GPVirtual) {
			VMOVUPS(indexed(x, i), v)
			VFMSUB213PS(top, log2e, v)
			VMAXPS(least, v, v)
			VROUNDPS(operand.U8(8), v, w)
			VSUBPS(w, v, v)
			polynomial(v, t, len(exp2Coefficients), func(i int) operand.Op { return coefficient[i] })
			VFMADD213PS(one, v, t)
			// Add the exponent to that of 2^f, which is in [0.7, 1.42).
			VCVTPS2DQ(w, w)
			VPSLLD(operand.U8(23), w, w)
			VPADDD(w, t, t)
			VADDPS(t, sum, sum)
			VMOVUPS(t, indexed(x, i))
		})
		fold256(VADDPS, sum, t)
		VMOVUPS(table(4), v)
		VDIVPS(sum, v, sum)
		if words {
			MOVQ(q, to)
		}
		eachVector("divide", n, 32, func(i reg.GPVirtual) {
			VMULPS(indexed(x, i), sum, t)
			if !words {
				VMOVUPS(t, indexed(x, i))
				return
			}
			VCVTPS2DQ(t, t)
			VEXTRACTI128(operand.U8(1), t, v.AsX())
			VPACKSSDW(v.AsX(), t.AsX(), t.AsX())
			VMOVDQU(t.AsX(), operand.Mem{Base: to})
			ADDQ(operand.U8(16), to)
		})
		if words {
			ADDQ(ldq, q)
		}
	})
}

func geluAVX2() {
	p := text("geluAVX2", "geluAVX2 is gelu.")
	n := field(p, raN)
	SHLQ(operand.U8(2), n)
	table := repeated("gelu256", append([]float32{geluLimit, -geluLimit, 2.0 / (geluLimit * geluLimit), 1, 0.5}, geluCoefficients...)...)
	for i := range 5 {
		VMOVUPS(table(i), ymm[11+i])
	}
	gelu(p, n, 32, ymm, [5]reg.VecPhysical(ymm[11:16]), func(i int) operand.Op { return table(5 + i) })
}

func quantizeAVX2() {
	p := text("quantizeAVX2", "quantizeAVX2 is quantize.")
	n := field(p, raN)
	SHLQ(operand.U8(2), n)
	q, ldq := field(p, raQ), field(p, raLdq)
	scale, low := field(p, raScale), field(p, raMin)
	table := repeated("quantize256", 1.0/255, 1)
	least, high, t, u, step, inverse := ymm[0], ymm[1], ymm[2], ymm[3], ymm[4], ymm[5]
	unit, one := ymm[14], ymm[15]
	VMOVUPS(table(0), unit)
	VMOVUPS(table(1), one)
	eachRow(p, func(x reg.GPVirtual) {
		VMOVUPS(operand.Mem{Base: x}, least)
		VMOVAPS(least, high)
		eachVector("range", n, 32, func(i reg.GPVirtual) {
			VMOVUPS(indexed(x, i), t)
			VMINPS(t, least, least)
			VMAXPS(t, high, high)
		})
		fold256(VMINPS, least, t)
		fold256(VMAXPS, high, t)
		VSUBPS(least, high, step)
		VMULPS(unit, step, step)
		// 1/step, or 0 if step is 0: a constant row has step 0 and bytes 0.
		VXORPS(t, t, t)
		VCMPPS(operand.U8(4), t, step, t)
		VDIVPS(step, one, inverse)
		VANDPS(t, inverse, inverse)
		VMOVSS(least.AsX(), operand.Mem{Base: low})
		VMOVSS(step.AsX(), operand.Mem{Base: scale})
		ADDQ(operand.U8(4), low)
		ADDQ(operand.U8(4), scale)
		to := GP64()
		MOVQ(q, to)
		eachVector("bytes", n, 64, func(i reg.GPVirtual) {
			for j, z := range []reg.VecPhysical{t, u} {
				m := indexed(x, i)
				m.Disp = 32 * j
				VMOVUPS(m, z)
				VSUBPS(least, z, z)
				VMULPS(inverse, z, z)
				VCVTPS2DQ(z, z)
			}
			// Packing works within 128 bits; the permutation restores the order.
			VPACKSSDW(u, t, t)
			VPERMQ(operand.U8(0xd8), t, t)
			VEXTRACTI128(operand.U8(1), t, u.AsX())
			VPACKUSWB(u.AsX(), t.AsX(), t.AsX())
			VMOVDQU(t.AsX(), operand.Mem{Base: to})
			ADDQ(operand.U8(16), to)
		})
		ADDQ(ldq, q)
	})
}

func normAVX2() {
	p := text("normAVX2", "normAVX2 is norm.")
	n := field(p, raN)
	SHLQ(operand.U8(2), n)
	h, ldr := field(p, raResidual), field(p, raLdr)
	weight, bias := field(p, raWeight), field(p, raBias)
	inputWeight, inputBias := field(p, raInputWeight), field(p, raInputBias)
	table := repeated("norm256", 1)
	mean, squares, t, v := ymm[0], ymm[1], ymm[2], ymm[3]
	epsilon, inverse, one := ymm[13], ymm[14], ymm[15]
	VBROADCASTSS(p.Offset(raEpsilon), epsilon)
	VBROADCASTSS(p.Offset(raInverse), inverse)
	VMOVUPS(table(0), one)
	eachRow(p, func(x reg.GPVirtual) {
		VXORPS(mean, mean, mean)
		eachVector("sum", n, 32, func(i reg.GPVirtual) {
			VMOVUPS(indexed(x, i), v)
			VADDPS(indexed(h, i), v, v)
			VMOVUPS(v, indexed(h, i))
			VADDPS(v, mean, mean)
		})
		fold256(VADDPS, mean, t)
		VMULPS(inverse, mean, mean)
		VXORPS(squares, squares, squares)
		eachVector("squares", n, 32, func(i reg.GPVirtual) {
			VMOVUPS(indexed(h, i), v)
			VSUBPS(mean, v, v)
			VFMADD231PS(v, v, squares)
		})
		fold256(VADDPS, squares, t)
		VFMADD213PS(epsilon, inverse, squares)
		VSQRTPS(squares, squares)
		VDIVPS(squares, one, squares)
		eachVector("scale", n, 32, func(i reg.GPVirtual) {
			VMOVUPS(indexed(h, i), v)
			VSUBPS(mean, v, v)
			VMULPS(squares, v, v)
			VMOVUPS(indexed(weight, i), t)
			VFMADD213PS(indexed(bias, i), v, t)
			VMOVUPS(t, indexed(h, i))
			VMOVUPS(indexed(inputWeight, i), t)
			VFMADD213PS(indexed(inputBias, i), v, t)
			VMOVUPS(t, indexed(x, i))
		})
		ADDQ(ldr, h)
	})
}
