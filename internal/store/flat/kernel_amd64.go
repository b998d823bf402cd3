package flat

import "golang.org/x/sys/cpu"

//go:generate go -C asm run . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -pkg flat

// available returns the kernels this machine runs, the fastest first.
func available() []kernel {
	var kernels []kernel
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512VNNI {
		k := kernel{name: "avx512vnni", dots: dotsByVNNI, sums: sumsPortable, estimates: estimatesByAVX512, atLeast: atLeastByAVX512, fine: fineByAVX2}
		if cpu.X86.HasAVX512VPOPCNTDQ {
			k.sums = sumsByVPOPCNT
		}
		kernels = append(kernels, k)
	}
	if cpu.X86.HasAVX2 {
		k := portable
		k.name, k.dots, k.fine = "avx2", dotsByAVX2, fineByAVX2
		kernels = append(kernels, k)
	}
	return append(kernels, portable)
}

// group is how many vectors the assembly takes at once.
const group = 4

func dotsByVNNI(dots []int32, codes []byte, q *query, stride int) {
	if n := len(dots) / group; n > 0 {
		_, _ = codes[n*group*stride-1], q.int8[stride-1]
		dotsVNNI(&dots[0], &codes[0], &q.int8[0], n, stride)
	}
	dotsRest(dots, codes, q, stride)
}

func dotsByAVX2(dots []int32, codes []byte, q *query, stride int) {
	if n := len(dots) / group; n > 0 {
		_, _ = codes[n*group*stride-1], q.int16[stride-1]
		dotsAVX2(&dots[0], &codes[0], &q.int16[0], n, stride)
	}
	dotsRest(dots, codes, q, stride)
}

// dotsRest computes the last vectors that make no whole group.
func dotsRest(dots []int32, codes []byte, q *query, stride int) {
	done := len(dots) / group * group
	dotsPortable(dots[done:], codes[done*stride:], q, stride)
}

func sumsByVPOPCNT(sums []int32, signs, query []uint64) {
	words := len(query) / planes
	n := len(sums) / lanes
	if n == 0 {
		return
	}
	_ = signs[n*lanes*words-1]
	sumsVPOPCNT(&sums[0], &signs[0], &query[0], n, words)
}

func estimatesByAVX512(out *[blockLen]float32, sums *[blockLen]int32, factor *[blockLen]float32, slope, offset, centre float32) {
	estimatesAVX512(&out[0], &sums[0], &factor[0], slope, offset, centre, blockLen/16)
}

func atLeastByAVX512(bits *blockBits, estimates, sigma *[blockLen]float32, spread, floor float32) {
	atLeastAVX512(&bits[0], &estimates[0], &sigma[0], spread, floor, len(bits))
}

func fineByAVX2(query []int16, codes, low []byte) int64 {
	const step = 16
	n := len(query) / step
	done := n * step
	sum := finePortable(query[done:], codes[done:], low[done:])
	if n > 0 {
		_, _ = codes[done-1], low[done-1]
		sum += fineAVX2(&query[0], &codes[0], &low[0], n)
	}
	return sum
}
