package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// fine emits the product of a query with a vector of 16 bits a coordinate, whose high and
// low bytes are apart. A pair of products fits 32 bits, so it is widened before it is
// added.
func fine() {
	TEXT("fineAVX2", NOSPLIT, "func(query *int16, codes, low *byte, steps int) int64")
	Pragma("noescape")
	Doc("fineAVX2 returns the sum of query x ((code - 128) x 256 + low) over 16 x steps coordinates. steps is at least 1.")
	query := Load(Param("query"), GP64())
	codes := Load(Param("codes"), GP64())
	low := Load(Param("low"), GP64())
	steps := Load(Param("steps"), GP64())

	zero := YMM() // 128 in each word
	VPCMPEQW(zero, zero, zero)
	VPSRLW(operand.U8(15), zero, zero)
	VPSLLW(operand.U8(7), zero, zero)
	acc := []reg.VecVirtual{YMM(), YMM()}
	for _, a := range acc {
		VPXOR(a, a, a)
	}

	Label("fine")
	n, l := YMM(), YMM()
	VPMOVZXBW(operand.Mem{Base: codes}, n)
	VPSUBW(zero, n, n)
	VPSLLW(operand.U8(8), n, n)
	VPMOVSXBW(operand.Mem{Base: low}, l)
	VPADDW(l, n, n)
	VPMADDWD(operand.Mem{Base: query}, n, n)
	wide, upper := YMM(), XMM()
	VPMOVSXDQ(n.AsX(), wide)
	VPADDQ(wide, acc[0], acc[0])
	VEXTRACTI128(operand.U8(1), n, upper)
	VPMOVSXDQ(upper, wide)
	VPADDQ(wide, acc[1], acc[1])
	ADDQ(operand.U8(16), codes)
	ADDQ(operand.U8(16), low)
	ADDQ(operand.U8(32), query)
	DECQ(steps)
	JNZ(operand.LabelRef("fine"))

	VPADDQ(acc[1], acc[0], acc[0])
	half := XMM()
	VEXTRACTI128(operand.U8(1), acc[0], half)
	VPADDQ(half, acc[0].AsX(), half)
	other := XMM()
	VPSHUFD(operand.U8(0x4e), half, other)
	VPADDQ(other, half, half)
	sum := GP64()
	VMOVQ(half, sum)
	VZEROUPPER()
	Store(sum, ReturnIndex(0))
	RET()
}
