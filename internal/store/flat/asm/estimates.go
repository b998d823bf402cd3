package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// broadcast returns a zmm of copies of a parameter.
func broadcast(name string) reg.VecVirtual {
	x, all := XMM(), ZMM()
	Load(Param(name), x)
	VBROADCASTSS(x, all)
	return all
}

// estimates emits the estimates of 16 vectors at a time, as sketch.estimate computes them:
// without fused operations, so that all kernels give the same.
func estimates() {
	TEXT("estimatesAVX512", NOSPLIT, "func(out *float32, sums *int32, factor *float32, slope, offset, centre float32, groups int)")
	Pragma("noescape")
	Doc("estimatesAVX512 sets 16 x groups numbers of out to centre + factor x (slope x sums + offset). groups is at least 1.")
	out := Load(Param("out"), GP64())
	sums := Load(Param("sums"), GP64())
	factor := Load(Param("factor"), GP64())
	slope, offset, centre := broadcast("slope"), broadcast("offset"), broadcast("centre")
	groups := Load(Param("groups"), GP64())

	Label("estimates")
	x := ZMM()
	VCVTDQ2PS(operand.Mem{Base: sums}, x)
	VMULPS(slope, x, x)
	VADDPS(offset, x, x)
	VMULPS(operand.Mem{Base: factor}, x, x)
	VADDPS(centre, x, x)
	VMOVUPS(x, operand.Mem{Base: out})
	for _, p := range []operand.Op{out, sums, factor} {
		ADDQ(operand.U8(64), p)
	}
	DECQ(groups)
	JNZ(operand.LabelRef("estimates"))
	VZEROUPPER()
	RET()
}

// atLeast emits the comparison of 16 bounds at a time with a floor.
func atLeast() {
	TEXT("atLeastAVX512", NOSPLIT, "func(bits *uint16, estimates, sigma *float32, spread, floor float32, groups int)")
	Pragma("noescape")
	Doc("atLeastAVX512 sets bit i of bits where estimates[i] + spread x sigma[i] is at least floor, for 16 x groups numbers. groups is at least 1.")
	bits := Load(Param("bits"), GP64())
	values := Load(Param("estimates"), GP64())
	sigma := Load(Param("sigma"), GP64())
	spread, floor := broadcast("spread"), broadcast("floor")
	groups := Load(Param("groups"), GP64())

	Label("atLeast")
	x, k, mask := ZMM(), K(), GP32()
	VMULPS(operand.Mem{Base: sigma}, spread, x)
	VADDPS(operand.Mem{Base: values}, x, x)
	const greaterOrEqual = 13 // ordered, signalling
	VCMPPS(operand.U8(greaterOrEqual), floor, x, k)
	KMOVW(k, mask)
	MOVW(mask.As16(), operand.Mem{Base: bits})
	for _, p := range []operand.Op{values, sigma} {
		ADDQ(operand.U8(64), p)
	}
	ADDQ(operand.U8(2), bits)
	DECQ(groups)
	JNZ(operand.LabelRef("atLeast"))
	VZEROUPPER()
	RET()
}
