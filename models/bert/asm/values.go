package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// panelVectors describes what packPanels emits: panels of two vectors of size bytes.
type panelVectors struct {
	size                  int
	top, inverse, even, t []reg.VecPhysical // two of each
	limit, unit           reg.VecPhysical   // 32767, and the scale of the largest value 1
	absolute, zero        reg.VecPhysical
	clear                 func(z reg.VecPhysical)
	// invert sets inverse to limit/top, or 0 where top is 0. t is scratch.
	invert func(top, inverse, t reg.VecPhysical)
	// pair puts the words of odd, in the upper halves, next to those of even.
	pair  func(odd, even reg.VecPhysical)
	store func(z reg.VecPhysical, to operand.Mem)
}

// packPanels emits packValues.
func packPanels(p operand.Mem, v panelVectors) {
	x, ld, n := field(p, haX), field(p, haLd), field(p, haN)
	out, scale := field(p, haOut), field(p, haScale)
	at, count := GP64(), GP64()
	offset := func(base reg.GPVirtual, j int) operand.Mem { return operand.Mem{Base: base, Disp: v.size * j} }

	Label("panel")
	MOVQ(x, at)
	MOVQ(p.Offset(haRows), count)
	for _, z := range v.top {
		v.clear(z)
	}
	Label("largest")
	for j := range 2 {
		VANDPS(offset(at, j), v.absolute, v.t[j])
		VMAXPS(v.t[j], v.top[j], v.top[j])
	}
	ADDQ(ld, at)
	DECQ(count)
	JNE(operand.LabelRef("largest"))
	for j, top := range v.top {
		v.invert(top, v.inverse[j], v.t[j])
		VMULPS(v.unit, top, top)
		VMOVUPS(top, offset(scale, j))
	}
	MOVQ(x, at)
	MOVQ(p.Offset(haRows), count)
	row := func(to []reg.VecPhysical) {
		for j, z := range to {
			VMULPS(offset(at, j), v.inverse[j], z)
			VCVTPS2DQ(z, z)
		}
		ADDQ(ld, at)
	}
	store := func(odd ...reg.VecPhysical) {
		for j, even := range v.even {
			v.pair(odd[j], even)
			v.store(even, offset(out, j))
		}
		ADDQ(operand.U32(uint32(2*v.size)), out)
	}
	SUBQ(operand.U8(2), count)
	JLT(operand.LabelRef("last"))
	Label("pair")
	row(v.even)
	row(v.t)
	for _, z := range v.t {
		VPSLLD(operand.U8(16), z, z)
	}
	store(v.t...)
	SUBQ(operand.U8(2), count)
	JGE(operand.LabelRef("pair"))
	Label("last")
	ADDQ(operand.U8(2), count)
	JEQ(operand.LabelRef("done"))
	row(v.even)
	store(v.zero, v.zero)
	Label("done")
	ADDQ(operand.U32(uint32(2*v.size)), scale)
	ADDQ(operand.U32(uint32(2*v.size)), x)
	SUBQ(operand.U8(uint8(v.size/2)), n)
	JNE(operand.LabelRef("panel"))
	VZEROUPPER()
	RET()
}
