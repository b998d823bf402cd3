package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// broadcast returns a ymm of copies of a parameter.
func broadcast(name string) reg.VecVirtual {
	x, all := XMM(), YMM()
	Load(Param(name), x)
	VBROADCASTSS(x, all)
	return all
}

// estimates emits the estimates of 64 vectors at a time. A row has a byte of each vector,
// whose halves VPSHUFB looks up in two tables of the query. The two values together fit a
// byte; they are added up as words, of the bytes with even and odd numbers apart. The
// floating-point operations are not fused, so that all kernels give the same.
func estimates() {
	TEXT("estimatesAVX2", NOSPLIT, "func(out *float32, signs, tables *byte, factor *float32, slope, offset, centre float32, rows, groups int)")
	Pragma("noescape")
	Doc("estimatesAVX2 sets 64 x groups numbers of out to centre + factor x (slope x sum + offset), where sum is looked up in the tables by the rows of signs. rows is 1 to 256, groups at least 1.")
	out := Load(Param("out"), GP64())
	signs := Load(Param("signs"), GP64())
	tables := Load(Param("tables"), GP64())
	factor := Load(Param("factor"), GP64())
	slope, offset, centre := broadcast("slope"), broadcast("offset"), broadcast("centre")
	rows := Load(Param("rows"), GP64())
	groups := Load(Param("groups"), GP64())
	half := lowBits(4)
	var even, odd [2]reg.VecVirtual
	for i := range even {
		even[i], odd[i] = YMM(), YMM()
	}
	table, row := GP64(), GP64()

	Label("group")
	for i := range even {
		VPXOR(even[i], even[i], even[i])
		VPXOR(odd[i], odd[i], odd[i])
	}
	MOVQ(tables, table)
	MOVQ(rows, row)
	Label("row")
	PREFETCHT0(operand.Mem{Base: signs, Disp: 2048})
	first, second := YMM(), YMM()
	VBROADCASTI128(operand.Mem{Base: table}, first)
	VBROADCASTI128(operand.Mem{Base: table, Disp: 16}, second)
	for i := range even {
		low, high := YMM(), YMM()
		VMOVDQU(operand.Mem{Base: signs, Disp: 32 * i}, high)
		VPAND(half, high, low)
		VPSRLW(operand.U8(4), high, high)
		VPAND(half, high, high)
		VPSHUFB(low, first, low)
		VPSHUFB(high, second, high)
		VPADDB(high, low, low)
		VPADDW(low, even[i], even[i]) // and the odd bytes x 256
		VPSRLW(operand.U8(8), low, low)
		VPADDW(low, odd[i], odd[i])
	}
	ADDQ(operand.U8(64), signs)
	ADDQ(operand.U8(32), table)
	DECQ(row)
	JNZ(operand.LabelRef("row"))

	for i := range even {
		low, high := YMM(), YMM()
		VPSLLW(operand.U8(8), odd[i], low)
		VPSUBW(low, even[i], even[i])
		VPUNPCKHWD(odd[i], even[i], high)
		VPUNPCKLWD(odd[i], even[i], low)
		for at, words := range []reg.VecVirtual{low, high} {
			for lane := range 2 {
				part, x := XMM(), YMM()
				VEXTRACTI128(operand.U8(lane), words, part)
				VPMOVZXWD(part, x)
				VCVTDQ2PS(x, x)
				VMULPS(slope, x, x)
				VADDPS(offset, x, x)
				place := 4 * (32*i + 16*lane + 8*at)
				VMULPS(operand.Mem{Base: factor, Disp: place}, x, x)
				VADDPS(centre, x, x)
				VMOVUPS(x, operand.Mem{Base: out, Disp: place})
			}
		}
	}
	ADDQ(operand.I32(256), out)
	ADDQ(operand.I32(256), factor)
	DECQ(groups)
	JNZ(operand.LabelRef("group"))
	VZEROUPPER()
	RET()
}

// atLeast emits the comparison of 8 bounds at a time with a floor.
func atLeast() {
	TEXT("atLeastAVX2", NOSPLIT, "func(bits *byte, estimates, sigma *float32, spread, floor float32, groups int)")
	Pragma("noescape")
	Doc("atLeastAVX2 sets bit i of bits where estimates[i] + spread x sigma[i] is at least floor, for 8 x groups numbers. groups is at least 1.")
	bits := Load(Param("bits"), GP64())
	values := Load(Param("estimates"), GP64())
	sigma := Load(Param("sigma"), GP64())
	spread, floor := broadcast("spread"), broadcast("floor")
	groups := Load(Param("groups"), GP64())

	Label("atLeast")
	x, mask := YMM(), GP32()
	VMULPS(operand.Mem{Base: sigma}, spread, x)
	VADDPS(operand.Mem{Base: values}, x, x)
	const greaterOrEqual = 13 // ordered, signalling
	VCMPPS(operand.U8(greaterOrEqual), floor, x, x)
	VMOVMSKPS(x, mask)
	MOVB(mask.As8(), operand.Mem{Base: bits})
	for _, p := range []operand.Op{values, sigma} {
		ADDQ(operand.U8(32), p)
	}
	INCQ(bits)
	DECQ(groups)
	JNZ(operand.LabelRef("atLeast"))
	VZEROUPPER()
	RET()
}
