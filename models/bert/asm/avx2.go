package main

import (
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
	m := machine256
	product8AVX2()
	m.product("product32AVX2", "", ymm[14:16], m.zero, multiplyFloats)
	m.product("product16AVX2", "VPMADDWD", []reg.VecPhysical{ymm[14], ymm[14]}, func(z reg.VecPhysical) { VPXOR(z, z, z) }, func(b, v, acc reg.VecPhysical) {
		VPMADDWD(b, v, ymm[15])
		VPADDD(ymm[15], acc, acc)
	})
	packWordsAVX2()
	m.packValues("packValuesAVX2")
	m.softmax(false)
	m.softmax(true)
	m.gelu()
	m.quantize()
	m.norm()
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

func fold256(op func(...operand.Op), z, t reg.VecPhysical) {
	VPERM2F128(operand.U8(1), z, z, t)
	op(t, z, z)
	for _, imm := range []uint8{0x4e, 0xb1} {
		VPERMILPS(operand.U8(imm), z, t)
		op(t, z, z)
	}
}

func geluConstants256(values []float32) (in []reg.VecPhysical, coefficient func(i int) operand.Op) {
	table := repeated("gelu256", values...)
	for i := range 5 {
		VMOVUPS(table(i), ymm[11+i])
	}
	return ymm[11:16], func(i int) operand.Op { return table(5 + i) }
}

// machine256 is AVX2. Its registers leave no room for two rows.
var machine256 = machine{
	name: "AVX2", size: 32, registers: ymm, tile: tileRows32AVX2, most: 1,
	rows: func(p operand.Mem, body func(string, []reg.GPVirtual)) {
		eachRow(p, func(x reg.GPVirtual) { body("", []reg.GPVirtual{x}) })
	},
	zero:     func(z reg.VecPhysical) { VXORPS(z, z, z) },
	absolute: absolute256, fold: fold256, inverse: inverse256, mask: mask256, geluConstants: geluConstants256,
	interleave: func() func(odd, even reg.VecPhysical) {
		return func(odd, even reg.VecPhysical) { VPBLENDW(operand.U8(0xaa), odd, even, even) }
	},
	bytes: func(z []reg.VecPhysical, to operand.Mem) {
		t, u := z[0], z[1]
		// Packing works within 128 bits; the permutation restores the order.
		VPACKSSDW(u, t, t)
		VPERMQ(operand.U8(0xd8), t, t)
		VEXTRACTI128(operand.U8(1), t, u.AsX())
		VPACKUSWB(u.AsX(), t.AsX(), t.AsX())
		VMOVDQU(t.AsX(), to)
	},
	words: func(z, t reg.VecPhysical, to operand.Mem) {
		VEXTRACTI128(operand.U8(1), z, t.AsX())
		VPACKSSDW(t.AsX(), z.AsX(), z.AsX())
		VMOVDQU(z.AsX(), to)
	},
	whole: func(v, w, least reg.VecPhysical) {
		VMAXPS(least, v, v)
		VROUNDPS(operand.U8(8), v, w)
	},
	scale: func(w, t reg.VecPhysical) {
		// Add the exponent to that of 2^f, which is in [0.7, 1.42).
		VCVTPS2DQ(w, w)
		VPSLLD(operand.U8(23), w, w)
		VPADDD(w, t, t)
	},
}

func mask256(n reg.GPVirtual, name string, last reg.VecPhysical) func(other, z reg.VecPhysical) {
	// The mask is a window on eight words of ones and eight of zeros. It begins 32 bytes
	// after the start, less four for each score.
	tail, base := GP64(), GP64()
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
	LEAQ(masks.Offset(28), base)
	VMOVUPS(operand.Mem{Base: base, Index: tail, Scale: 4}, last)
	return func(other, z reg.VecPhysical) { VBLENDVPS(last, z, other, z) }
}

// absolute256 sets z to the mask of the bits of a float32 without its sign.
func absolute256(z reg.VecPhysical) {
	VPCMPEQD(z, z, z)
	VPSRLD(operand.U8(1), z, z)
}

// inverse256 sets inverse to limit/top, or 0 where top is 0. t is scratch.
func inverse256(top, limit, inverse, t reg.VecPhysical) {
	VXORPS(t, t, t)
	VCMPPS(operand.U8(4), t, top, t)
	VDIVPS(top, limit, inverse)
	VANDPS(t, inverse, inverse)
}

func packWordsAVX2() {
	p := text("packWordsAVX2", "packWordsAVX2 is packWords.")
	x, ld, n := field(p, haX), field(p, haLd), field(p, haN)
	out, scale := field(p, haOut), field(p, haScale)
	SHLQ(operand.U8(2), n)
	top, t, u, inverse := ymm[0], ymm[1], ymm[2], ymm[3]
	limit, absolute := ymm[15], ymm[14]
	VBROADCASTSS(p.Offset(haLimit), limit)
	absolute256(absolute)
	at, count := GP64(), GP64()
	each := func(name string, size int, body func(i reg.GPVirtual)) {
		MOVQ(x, at)
		MOVQ(p.Offset(haRows), count)
		Label(name + "Row")
		eachVector(name, n, size, body)
		ADDQ(ld, at)
		DECQ(count)
		JNE(operand.LabelRef(name + "Row"))
	}
	VXORPS(top, top, top)
	each("largest", 32, func(i reg.GPVirtual) {
		VANDPS(indexed(at, i), absolute, t)
		VMAXPS(t, top, top)
	})
	fold256(VMAXPS, top, t)
	inverse256(top, limit, inverse, t)
	VDIVPS(limit, top, top)
	VMOVSS(top.AsX(), operand.Mem{Base: scale})
	each("round", 64, func(i reg.GPVirtual) {
		for j, z := range []reg.VecPhysical{t, u} {
			m := indexed(at, i)
			m.Disp = 32 * j
			VMULPS(m, inverse, z)
			VCVTPS2DQ(z, z)
		}
		// Packing works within 128 bits; the permutation restores the order.
		VPACKSSDW(u, t, t)
		VPERMQ(operand.U8(0xd8), t, t)
		VMOVDQU(t, operand.Mem{Base: out})
		ADDQ(operand.U8(32), out)
	})
	VZEROUPPER()
	RET()
}
