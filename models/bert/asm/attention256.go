package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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
