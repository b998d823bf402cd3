package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// product emits product32 or, for pairs of 16 bits and with the name of the instruction that
// multiplies them, product16: panels of two vectors. Both read four bytes of a row in each
// step. Broadcasts go to v. multiply adds the product of v and b to acc.
func (m machine) product(name, instruction string, v []reg.VecPhysical, zero func(z reg.VecPhysical), multiply func(b, v, acc reg.VecPhysical)) {
	size, acc, b := m.size, m.registers[:2*m.tile], m.registers[2*m.tile:2*m.tile+2]
	doc := "product32 with panels of %d columns and"
	var scale reg.GPVirtual
	if instruction != "" {
		doc = "product16 with " + instruction + ": panels of %d columns,"
	}
	p := text(name, fmt.Sprintf(name+" is "+doc+" tiles of up to %d rows.", size/2, m.tile))
	if instruction != "" {
		scale = GP64()
	}
	dispatch(field(p, p32Rows), m.tile, func(rows int) {
		a, c := field(p, p32A), field(p, p32C)
		lda, ldb, ldc := field(p, p32Lda), field(p, p32Ldb), field(p, p32Ldc)
		tiles := field(p, p32Tiles)
		at := newRowPointers(rows, lda)
		w, count := GP64(), GP64()
		step := func(s int) {
			for j := range 2 {
				VMOVUPS(operand.Mem{Base: w, Disp: size * j}, b[j])
			}
			ADDQ(ldb, w)
			for r := range rows {
				VBROADCASTSS(at.row(r, 4*s), v[r%2])
				for j := range 2 {
					multiply(b[j], v[r%2], acc[2*r+j])
				}
			}
		}
		name := func(s string) string { return fmt.Sprintf("%s%d", s, rows) }
		ref := func(s string) operand.LabelRef { return operand.LabelRef(name(s)) }
		Label(name("tile"))
		at.start(a)
		MOVQ(p.Offset(p32B), w)
		MOVQ(p.Offset(p32Depth), count)
		for i := range 2 * rows {
			zero(acc[i])
		}
		SUBQ(operand.U8(4), count)
		JLT(ref("rest"))
		Label(name("four"))
		for s := range 4 {
			step(s)
		}
		at.advance(16)
		SUBQ(operand.U8(4), count)
		JGE(ref("four"))
		Label(name("rest"))
		ADDQ(operand.U8(4), count)
		JEQ(ref("store"))
		Label(name("one"))
		step(0)
		at.advance(4)
		DECQ(count)
		JNE(ref("one"))
		Label(name("store"))
		for r := range rows {
			for j := range 2 {
				z := acc[2*r+j]
				if instruction != "" {
					MOVQ(p.Offset(p32Scale), scale)
					VCVTDQ2PS(z, z)
					VMULPS(operand.Mem{Base: scale, Disp: size * j}, z, z)
				}
				VMOVUPS(z, operand.Mem{Base: c, Disp: size * j})
			}
			ADDQ(ldc, c)
		}
		IMUL3Q(operand.U8(uint8(rows)), lda, count)
		ADDQ(count, a)
		DECQ(tiles)
		JNE(ref("tile"))
	})
}

func multiplyFloats(b, v, acc reg.VecPhysical) { VFMADD231PS(b, v, acc) }

// bytesProduct emits product8 for panels of which 16 inputs take panel bytes. clear emits the
// code that clears the accumulators of a number of rows, step that for 16 inputs, and finish
// that which writes the results to c.
func bytesProduct(p operand.Mem, most, panel int, clear func(rows int), step func(rows int, at rowPointers, w reg.GPVirtual), finish func(rows int, c, ldc, scale, low reg.GPVirtual)) {
	dispatch(field(p, p8Rows), most, func(rows int) {
		a, c := field(p, p8A), field(p, p8C)
		lda, ldc := field(p, p8Lda), field(p, p8Ldc)
		scale, low := field(p, p8Scale), field(p, p8Min)
		tiles := field(p, p8Tiles)
		at := newRowPointers(rows, lda)
		w, count := GP64(), GP64()
		tile, loop := fmt.Sprintf("tile%d", rows), fmt.Sprintf("depth%d", rows)
		Label(tile)
		at.start(a)
		MOVQ(p.Offset(p8W), w)
		MOVQ(p.Offset(p8Depth), count)
		clear(rows)
		Label(loop)
		step(rows, at, w)
		at.advance(16)
		ADDQ(operand.U32(uint32(panel)), w)
		SUBQ(operand.U8(16), count)
		JNE(operand.LabelRef(loop))
		finish(rows, c, ldc, scale, low)
		ADDQ(operand.U8(uint8(4*rows)), scale)
		ADDQ(operand.U8(uint8(4*rows)), low)
		IMUL3Q(operand.U8(uint8(rows)), lda, count)
		ADDQ(count, a)
		DECQ(tiles)
		JNE(operand.LabelRef(tile))
	})
}
