package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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
