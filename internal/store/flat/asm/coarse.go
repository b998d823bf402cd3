package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// coarseBits is the number of bits of a coarse coordinate, as in package flat.
const coarseBits = 4

// ahead is the number of places after which a code is prefetched.
const ahead = 8

// coarse emits the products of a query with the coarse codes at some places of a block. A
// step is 32 bytes of a code. Their bits from 0 belong to 32 coordinates, those from
// coarseBits to the next 32, and so on.
func coarse() {
	TEXT("coarseAVX2", NOSPLIT, "func(sums *int32, codes *byte, places *uint16, query *int8, n, steps int)")
	Pragma("noescape")
	Doc("coarseAVX2 sets sums to the products of query with the codes of 32 x steps bytes at n places. n and steps are at least 1.")
	sums := Load(Param("sums"), GP64())
	codes := Load(Param("codes"), GP64())
	places := Load(Param("places"), GP64())
	query := Load(Param("query"), GP64())
	n := Load(Param("n"), GP64())
	steps := Load(Param("steps"), GP64())
	mask := lowBits(coarseBits)
	ones := YMM() // in each word
	VPCMPEQW(ones, ones, ones)
	VPSRLW(operand.U8(15), ones, ones)
	size := GP64() // of a code
	MOVQ(steps, size)
	SHLQ(operand.U8(5), size)
	row, by, step := GP64(), GP64(), GP64()
	total := YMM()

	Label("place")
	CMPQ(n, operand.U8(ahead))
	JLE(operand.LabelRef("code"))
	MOVWQZX(operand.Mem{Base: places, Disp: 2 * ahead}, row)
	IMULQ(size, row)
	ADDQ(codes, row)
	for line := range 3 { // all of a code of 384 coordinates
		PREFETCHT0(operand.Mem{Base: row, Disp: 64 * line})
	}
	Label("code")
	MOVWQZX(operand.Mem{Base: places}, row)
	IMULQ(size, row)
	ADDQ(codes, row)
	MOVQ(query, by)
	MOVQ(steps, step)
	VPXOR(total, total, total)
	Label("coarseStep")
	code := YMM()
	VMOVDQU(operand.Mem{Base: row}, code)
	var sum reg.VecVirtual
	for plane := range 8 / coarseBits {
		part := YMM()
		if plane > 0 {
			VPSRLW(operand.U8(coarseBits*plane), code, part)
			VPAND(mask, part, part)
		} else {
			VPAND(mask, code, part)
		}
		VPMADDUBSW(operand.Mem{Base: by, Disp: 32 * plane}, part, part)
		if sum == nil {
			sum = part
		} else {
			VPADDW(part, sum, sum) // of 8/coarseBits parts, each at most 2 x 15 x 127
		}
	}
	VPMADDWD(ones, sum, sum)
	VPADDD(sum, total, total)
	ADDQ(operand.U8(32), row)
	ADDQ(operand.I32(256/coarseBits), by)
	DECQ(step)
	JNZ(operand.LabelRef("coarseStep"))
	half, other := XMM(), XMM()
	VEXTRACTI128(operand.U8(1), total, half)
	VPADDD(total.AsX(), half, half)
	VPSHUFD(operand.U8(0x4e), half, other)
	VPADDD(other, half, half)
	VPSHUFD(operand.U8(0xb1), half, other)
	VPADDD(other, half, half)
	VMOVD(half, operand.Mem{Base: sums})
	ADDQ(operand.U8(4), sums)
	ADDQ(operand.U8(2), places)
	DECQ(n)
	JNZ(operand.LabelRef("place"))
	VZEROUPPER()
	RET()
}
