package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// packKeysVNNI rounds rows to bytes first, then gathers four bytes of each of
// 16 keys at a time into the panel.
func packKeysVNNI() {
	p := text("packKeysVNNI", "packKeysVNNI is packKeys.")
	x, ld, n, rows := field(p, haX), field(p, haLd), field(p, haN), field(p, haRows)
	bytes, scale := field(p, haBytes), field(p, haScale)
	width := GP64()
	MOVQ(n, width)
	SHLQ(operand.U8(2), width)
	table := constants("packKeysTable", []float32{127, 1.0 / 127})
	limit, unit, absolute := zmm[31], zmm[30], zmm[29]
	VBROADCASTSS(table.Offset(0), limit)
	VBROADCASTSS(table.Offset(4), unit)
	absolute512(absolute)
	top, t, inverse := zmm[0], zmm[1], zmm[2]

	count := GP64()
	MOVQ(rows, count)
	Label("key")
	VPXORD(top, top, top)
	eachVector("largest", width, 64, func(i reg.GPVirtual) {
		VANDPS(indexed(x, i), absolute, t)
		VMAXPS(t, top, top)
	})
	fold512(VMAXPS, top, t)
	inverse512(top, limit, inverse, t)
	VMULPS(unit, top, top)
	VMOVSS(top.AsX(), operand.Mem{Base: scale})
	ADDQ(operand.U8(4), scale)
	eachVector("round", width, 64, func(i reg.GPVirtual) {
		VMULPS(indexed(x, i), inverse, t)
		VCVTPS2DQ(t, t)
		VPMOVSDB(t, operand.Mem{Base: bytes})
		ADDQ(operand.U8(16), bytes)
	})
	ADDQ(ld, x)
	DECQ(count)
	JNE(operand.LabelRef("key"))

	// Key i of a panel is i*n bytes after the first.
	out, sum := field(p, haOut), field(p, haSum)
	MOVQ(p.Offset(haBytes), bytes)
	MOVQ(p.Offset(haScale), scale)
	lanes := GLOBL("packKeysLanes", RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, operand.U32(uint32(i)))
	}
	index, ones := zmm[28], zmm[27]
	VPBROADCASTD(n.As32(), index)
	VPMULLD(lanes, index, index)
	MOVQ(operand.U32(0x01010101), count)
	VPBROADCASTD(count.As32(), ones)
	second, panels := GP64(), GP64()
	ADDQ(operand.U8(31), rows)
	MOVQ(rows, panels)
	SHRQ(operand.U8(5), panels)
	half := GP64()
	MOVQ(n, half)
	SHLQ(operand.U8(4), half)
	Label("panel")
	LEAQ(operand.Mem{Base: bytes, Index: half, Scale: 1}, second)
	VPXORD(zmm[4], zmm[4], zmm[4])
	VPXORD(zmm[5], zmm[5], zmm[5])
	MOVQ(n, count)
	Label("four")
	for j, base := range []reg.GPVirtual{bytes, second} {
		KXNORW(reg.K1, reg.K1, reg.K1)
		VPGATHERDD(operand.Mem{Base: base, Index: index, Scale: 1}, reg.K1, zmm[6+j])
		VMOVDQU8(zmm[6+j], operand.Mem{Base: out, Disp: 64 * j})
		VPDPBUSD(zmm[6+j], ones, zmm[4+j])
		ADDQ(operand.U8(4), base)
	}
	ADDQ(operand.U32(128), out)
	SUBQ(operand.U8(4), count)
	JNE(operand.LabelRef("four"))
	for j := range 2 {
		VCVTDQ2PS(zmm[4+j], zmm[4+j])
		VMULPS(operand.Mem{Base: scale, Disp: 64 * j}, zmm[4+j], zmm[4+j])
		VMOVUPS(zmm[4+j], operand.Mem{Base: sum, Disp: 64 * j})
	}
	ADDQ(operand.U32(128), scale)
	ADDQ(operand.U32(128), sum)
	// bytes went n forward in the panel; its 32 keys are 32*n.
	SUBQ(n, bytes)
	LEAQ(operand.Mem{Base: bytes, Index: half, Scale: 2}, bytes)
	DECQ(panels)
	JNE(operand.LabelRef("panel"))
	VZEROUPPER()
	RET()
}
