// Command asm writes the kernels of package flat: kernels_amd64.s and their
// declarations. It is a module of its own so that avo stays out of cairn's.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rows is how many vectors share one load of the query.
const rows = 4

func main() {
	ConstraintExpr("amd64")
	vnni()
	avx2()
	estimates()
	atLeast()
	fine()
	coarse()
	Generate()
}

// loop emits the frame of a kernel: for every group of rows vectors clear,
// for every step bytes of them step, and at the end reduce to one xmm of sums.
func loop(step, queryScale int, clear func(), body func(row []operand.Mem, query operand.Mem), reduce func() reg.VecVirtual) {
	dots := Load(Param("dots"), GP64())
	codes := Load(Param("codes"), GP64())
	query := Load(Param("query"), GP64())
	groups := Load(Param("groups"), GP64())
	stride := Load(Param("stride"), GP64())
	at := make([]reg.Register, rows)
	at[0] = codes
	for i := 1; i < rows; i++ {
		p := GP64()
		LEAQ(operand.Mem{Base: at[i-1], Index: stride, Scale: 1}, p)
		at[i] = p
	}
	offset := GP64()

	Label("group")
	clear()
	XORQ(offset, offset)
	Label("step")
	row := make([]operand.Mem, rows)
	for i := range row {
		row[i] = operand.Mem{Base: at[i], Index: offset, Scale: 1}
	}
	body(row, operand.Mem{Base: query, Index: offset, Scale: uint8(queryScale)})
	ADDQ(operand.U8(step), offset)
	CMPQ(offset, stride)
	JLT(operand.LabelRef("step"))
	VMOVDQU(reduce(), operand.Mem{Base: dots})
	ADDQ(operand.U8(4*rows), dots)
	for i := range at {
		LEAQ(operand.Mem{Base: at[i], Index: stride, Scale: rows}, at[i])
	}
	DECQ(groups)
	JNZ(operand.LabelRef("group"))
	VZEROUPPER()
	RET()
}

// sums adds up four ymm of int32 and returns the four sums in an xmm.
func sums(acc []reg.VecVirtual) reg.VecVirtual {
	VPHADDD(acc[1], acc[0], acc[0])
	VPHADDD(acc[3], acc[2], acc[2])
	VPHADDD(acc[2], acc[0], acc[0])
	high := XMM()
	VEXTRACTI128(operand.U8(1), acc[0], high)
	VPADDD(high, acc[0].AsX(), high)
	return high
}

// lowBits returns a ymm with the lowest n bits of each byte.
func lowBits(n int) reg.VecVirtual {
	mask := YMM()
	VPCMPEQW(mask, mask, mask)
	VPSRLW(operand.U8(16-n), mask, mask)
	VPACKUSWB(mask, mask, mask)
	return mask
}

const signature = "(dots *int32, codes *byte, query *%s, groups, stride int)"

func vnni() {
	TEXT("dotsVNNI", NOSPLIT, "func"+fmt.Sprintf(signature, "int8"))
	Pragma("noescape")
	Doc("dotsVNNI computes 4 x groups products of codes and query with AVX-512 VNNI, 64 bytes a step. groups is at least 1.")
	acc := []reg.VecVirtual{ZMM(), ZMM(), ZMM(), ZMM()}
	loop(64, 1, func() {
		for _, a := range acc {
			VPXORD(a, a, a)
		}
	}, func(row []operand.Mem, query operand.Mem) {
		q := ZMM()
		VMOVDQU64(query, q)
		for i, a := range acc {
			code := ZMM()
			VMOVDQU64(row[i], code)
			VPDPBUSD(q, code, a)
		}
	}, func() reg.VecVirtual {
		half := make([]reg.VecVirtual, rows)
		for i, a := range acc {
			half[i] = YMM()
			VEXTRACTI64X4(operand.U8(1), a, half[i])
			VPADDD(a.AsY(), half[i], half[i])
		}
		return sums(half)
	})
}

func avx2() {
	TEXT("dotsAVX2", NOSPLIT, "func"+fmt.Sprintf(signature, "int16"))
	Pragma("noescape")
	Doc("dotsAVX2 computes 4 x groups products of codes and query with AVX2, 16 bytes a step. groups is at least 1.")
	acc := []reg.VecVirtual{YMM(), YMM(), YMM(), YMM()}
	loop(16, 2, func() {
		for _, a := range acc {
			VPXOR(a, a, a)
		}
	}, func(row []operand.Mem, query operand.Mem) {
		q := YMM()
		VMOVDQU(query, q)
		for i, a := range acc {
			code := YMM()
			VPMOVZXBW(row[i], code)
			VPMADDWD(q, code, code)
			VPADDD(code, a, a)
		}
	}, func() reg.VecVirtual { return sums(acc) })
}
