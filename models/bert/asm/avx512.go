package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Tiles of the AVX-512 kernel: 14 rows of two vectors take 28 of the 32
// registers, and leave two for the panel and two for broadcasts.
const tileRows512 = 14

var zmm = []reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
	reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
	reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}

func avx512() {
	m := machine512
	product8VNNI()
	m.product("product32AVX512", "", zmm[30:32], m.zero, multiplyFloats)
	m.product("product16VNNI", "VPDPWSSD", zmm[30:32], m.zero, func(b, v, acc reg.VecPhysical) { VPDPWSSD(b, v, acc) })
	packKeysVNNI()
	m.packValues("packValuesVNNI")
	m.softmax(false)
	m.softmax(true)
	m.gelu()
	m.quantize()
	m.norm()
	transposeAVX512()
}

// dispatch emits a body for every tile height and a jump to the one for rows.
func dispatch(rows reg.GPVirtual, most int, body func(rows int)) {
	for r := most; r >= 1; r-- {
		CMPQ(rows, operand.U8(uint8(r)))
		JEQ(operand.LabelRef(fmt.Sprintf("rows%d", r)))
	}
	RET()
	for r := most; r >= 1; r-- {
		Label(fmt.Sprintf("rows%d", r))
		body(r)
		VZEROUPPER()
		RET()
	}
}

func product8VNNI() {
	p := text("product8VNNI", "product8VNNI is product8 with VPDPBUSD: panels of 32 columns, tiles of up to 14 rows.")
	b := zmm[28:30]
	v := zmm[30:32]
	acc := func(r, j int) reg.VecPhysical { return zmm[2*r+j] }
	bytesProduct(p, tileRows512, 512, func(rows int) {
		for i := range 2 * rows {
			VPXORD(zmm[i], zmm[i], zmm[i])
		}
	}, func(rows int, at rowPointers, w reg.GPVirtual) {
		for s := range 4 {
			for j := range 2 {
				VMOVDQU8(operand.Mem{Base: w, Disp: 128*s + 64*j}, b[j])
			}
			for r := range rows {
				VPBROADCASTD(at.row(r, 4*s), v[r%2])
				for j := range 2 {
					VPDPBUSD(b[j], v[r%2], acc(r, j))
				}
			}
		}
	}, func(rows int, c, ldc, scale, low reg.GPVirtual) {
		wscale, wsum, bias := field(p, p8Wscale), field(p, p8Wsum), field(p, p8Bias)
		// A column of accumulators at a time: its constants stay in registers.
		to := GP64()
		for j := range 2 {
			VMOVUPS(operand.Mem{Base: wscale, Disp: 64 * j}, b[0])
			VMOVUPS(operand.Mem{Base: wsum, Disp: 64 * j}, b[1])
			VMOVUPS(operand.Mem{Base: bias, Disp: 64 * j}, v[0])
			MOVQ(c, to)
			for r := range rows {
				VMOVAPS(b[1], v[1])
				VFMADD132PS_BCST(operand.Mem{Base: low, Disp: 4 * r}, v[0], v[1])
				VCVTDQ2PS(acc(r, j), acc(r, j))
				VMULPS(b[0], acc(r, j), acc(r, j))
				VFMADD132PS_BCST(operand.Mem{Base: scale, Disp: 4 * r}, v[1], acc(r, j))
				VMOVUPS(acc(r, j), operand.Mem{Base: to, Disp: 64 * j})
				ADDQ(ldc, to)
			}
		}
		MOVQ(to, c)
	})
}

// fold512 reduces the lanes of z to one with op and broadcasts it; t is scratch.
func fold512(op func(...operand.Op), z, t reg.VecPhysical) {
	for _, imm := range []uint8{0x4e, 0xb1} { // swap halves, swap quarters
		VSHUFF32X4(operand.U8(imm), z, z, t)
		op(t, z, z)
	}
	for _, imm := range []uint8{0x4e, 0xb1} { // the same within 128 bits
		VPERMILPS(operand.U8(imm), z, t)
		op(t, z, z)
	}
}

// eachRow loops over rows; body receives the row's address in x.
func eachRow(p operand.Mem, body func(x reg.GPVirtual)) {
	x, ld, rows := field(p, raX), field(p, raLd), field(p, raRows)
	Label("row")
	body(x)
	ADDQ(ld, x)
	DECQ(rows)
	JNE(operand.LabelRef("row"))
	VZEROUPPER()
	RET()
}

// geluLimit and geluCoefficients are those of package bert, which documents
// their origin. A test there compares results.
const geluLimit = 5

var geluCoefficients = []float32{
	0.141363785,
	-0.0702966526,
	0.0515214205,
	-0.0404329486,
	0.0314262286,
	-0.0233367309,
	0.0164976567,
	-0.0109732319,
	0.00616542948,
	-0.00291567342,
	0.00200186134,
	-0.00151415356,
	0.000492969062,
}

func geluConstants512(values []float32) (in []reg.VecPhysical, coefficient func(i int) operand.Op) {
	table := constants("gelu512", values)
	in = []reg.VecPhysical{zmm[31], zmm[30], zmm[29], zmm[28], zmm[27]}
	for i, z := range append(in, zmm[8:8+len(geluCoefficients)]...) {
		VBROADCASTSS(table.Offset(4*i), z)
	}
	return in, func(i int) operand.Op { return zmm[8+i] }
}

func (m machine) gelu() {
	name := "gelu" + m.name
	p := text(name, name+" is gelu.")
	n := field(p, raN)
	SHLQ(operand.U8(2), n)
	c, coefficient := m.geluConstants(append([]float32{geluLimit, -geluLimit, 2.0 / (geluLimit * geluLimit), 1, 0.5}, geluCoefficients...))
	high, low, square, one, half := c[0], c[1], c[2], c[3], c[4]
	v, clamped, u, t := m.registers[0], m.registers[1], m.registers[2], m.registers[3]
	eachRow(p, func(x reg.GPVirtual) {
		eachVector("vector", n, m.size, func(i reg.GPVirtual) {
			VMOVUPS(indexed(x, i), v)
			VMINPS(high, v, clamped)
			VMAXPS(low, clamped, clamped)
			VMULPS(clamped, clamped, u)
			VFMSUB213PS(one, square, u)
			polynomial(u, t, len(geluCoefficients), coefficient)
			VFMADD213PS(half, clamped, t)
			VMULPS(v, t, t)
			VMOVUPS(t, indexed(x, i))
		})
	})
}

// polynomial sets t to a polynomial of x with n coefficients, the lowest power first.
func polynomial(x, t reg.VecPhysical, n int, coefficient func(i int) operand.Op) {
	VMOVAPS(coefficient(n-1), t)
	for i := n - 2; i >= 0; i-- {
		VFMADD213PS(coefficient(i), x, t)
	}
}

// eachPair loops over rows two at a time, so that one row's arithmetic fills the time in which
// another waits for its sum. body emits the code for the rows at the addresses in x, which
// follow each other; suffix makes its labels unique.
func eachPair(p operand.Mem, body func(suffix string, x []reg.GPVirtual)) {
	first, second, ld, rows := field(p, raX), GP64(), field(p, raLd), field(p, raRows)
	Label("pair")
	SUBQ(operand.U8(2), rows)
	JLT(operand.LabelRef("odd"))
	LEAQ(operand.Mem{Base: first, Index: ld, Scale: 1}, second)
	body("2", []reg.GPVirtual{first, second})
	LEAQ(operand.Mem{Base: first, Index: ld, Scale: 2}, first)
	JMP(operand.LabelRef("pair"))
	Label("odd")
	CMPQ(rows, operand.I8(-1))
	JNE(operand.LabelRef("done"))
	body("1", []reg.GPVirtual{first})
	Label("done")
	VZEROUPPER()
	RET()
}

// multiples sets z to the multiples of n by 0 to 15.
func multiples(name string, n reg.GPVirtual, z reg.VecPhysical) {
	lanes := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, operand.U32(uint32(i)))
	}
	VPBROADCASTD(n.As32(), z)
	VPMULLD(lanes, z, z)
}

// transposeAVX512 gathers an entry of 16 rows at a time.
func transposeAVX512() {
	p := text("transposeAVX512", "transposeAVX512 is transpose to panels of 32 columns.")
	x, ld, n, rows, out := field(p, taX), field(p, taLd), field(p, taN), field(p, taRows), field(p, taOut)
	index := zmm[31]
	multiples("transposeLanes", ld, index)
	half, second, at, count := GP64(), GP64(), GP64(), GP64()
	MOVQ(ld, half)
	SHLQ(operand.U8(4), half)
	low, high := GP64(), GP64()

	Label("panel")
	// Bits for the rows that exist, of 32: shifts by 64 and more would wrap.
	MOVQ(rows, reg.RCX)
	MOVQ(operand.U32(32), at)
	CMPQ(reg.RCX, at)
	CMOVQGT(at, reg.RCX)
	MOVQ(operand.U32(1), low)
	SHLQ(reg.CL, low)
	DECQ(low)
	MOVQ(low, high)
	SHRQ(operand.U8(16), high)
	MOVQ(x, at)
	LEAQ(operand.Mem{Base: x, Index: half, Scale: 1}, second)
	MOVQ(n, count)
	Label("entry")
	for j, from := range []reg.GPVirtual{at, second} {
		KMOVW([]reg.GPVirtual{low, high}[j].As32(), reg.K1)
		VPXORD(zmm[j], zmm[j], zmm[j])
		VPGATHERDD(operand.Mem{Base: from, Index: index, Scale: 1}, reg.K1, zmm[j])
		VMOVDQU32(zmm[j], operand.Mem{Base: out, Disp: 64 * j})
		ADDQ(operand.U8(4), from)
	}
	ADDQ(operand.U32(128), out)
	DECQ(count)
	JNE(operand.LabelRef("entry"))
	LEAQ(operand.Mem{Base: x, Index: half, Scale: 2}, x)
	SUBQ(operand.U8(32), rows)
	JG(operand.LabelRef("panel"))
	VZEROUPPER()
	RET()
}

// machine512 is AVX-512.
var machine512 = machine{
	name: "AVX512", size: 64, registers: zmm, tile: tileRows512, most: 2, rows: eachPair,
	zero:     func(z reg.VecPhysical) { VPXORD(z, z, z) },
	absolute: absolute512, fold: fold512, inverse: inverse512, mask: mask512, geluConstants: geluConstants512,
	interleave: func() func(odd, even reg.VecPhysical) {
		mask := GP64()
		MOVQ(operand.U32(0xaaaaaaaa), mask)
		KMOVD(mask.As32(), reg.K2)
		return func(odd, even reg.VecPhysical) { VPBLENDMW(odd, even, reg.K2, even) }
	},
	bytes: func(z []reg.VecPhysical, to operand.Mem) { VPMOVUSDB(z[0], to) },
	words: func(z, _ reg.VecPhysical, to operand.Mem) { VPMOVDW(z, to) },
	whole: func(v, w, _ reg.VecPhysical) { VRNDSCALEPS(operand.U8(8), v, w) },
	scale: func(w, t reg.VecPhysical) { VSCALEFPS(w, t, t) },
}

// absolute512 sets z to the mask of the bits of a float32 without its sign.
func absolute512(z reg.VecPhysical) {
	VPTERNLOGD(operand.U8(0xff), z, z, z)
	VPSRLD(operand.U8(1), z, z)
}

// inverse512 sets inverse to limit/top, or 0 where top is 0. t is scratch.
func inverse512(top, limit, inverse, t reg.VecPhysical) {
	VPXORD(t, t, t)
	VCMPPS(operand.U8(4), t, top, reg.K1)
	VDIVPS_Z(top, limit, reg.K1, inverse)
}

func mask512(n reg.GPVirtual, _ string, _ reg.VecPhysical) func(other, z reg.VecPhysical) {
	mask := GP64() // all ones if the vector is full
	MOVQ(n, reg.RCX)
	DECQ(reg.RCX)
	ANDQ(operand.U8(15), reg.RCX)
	MOVQ(operand.U32(2), mask)
	SHLQ(reg.CL, mask)
	DECQ(mask)
	KMOVW(mask.As32(), reg.K1)
	return func(other, z reg.VecPhysical) { VBLENDMPS(z, other, reg.K1, z) }
}

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
	index, ones := zmm[28], zmm[27]
	multiples("packKeysLanes", n, index)
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
