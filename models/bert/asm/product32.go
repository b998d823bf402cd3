package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vectors describes the tile that product emits: panels of two vectors of size bytes.
type vectors struct {
	size      int
	acc, b, v []reg.VecPhysical // results, a row of the panel, broadcasts
	zero      func(reg.VecPhysical)
	// multiply adds the product of broadcast v and b to acc.
	multiply func(b, v, acc reg.VecPhysical)
	// finish turns accumulator j of a row into float32s, once a tile.
	finish func(p operand.Mem, j int, acc reg.VecPhysical)
}

// product emits product32 or, for pairs of 16 bits, product16. Both read four
// bytes of a row in each step.
func product(p operand.Mem, most int, x vectors) {
	size, acc, b, v := x.size, x.acc, x.b, x.v
	dispatch(field(p, p32Rows), most, func(rows int) {
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
					x.multiply(b[j], v[r%2], acc[2*r+j])
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
			x.zero(acc[i])
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
				x.finish(p, j, acc[2*r+j])
				VMOVUPS(acc[2*r+j], operand.Mem{Base: c, Disp: size * j})
			}
			ADDQ(ldc, c)
		}
		IMUL3Q(operand.U8(uint8(rows)), lda, count)
		ADDQ(count, a)
		DECQ(tiles)
		JNE(ref("tile"))
	})
}
