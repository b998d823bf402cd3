package flat

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:generate go -C asm run . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -pkg flat

// available returns the kernels this machine runs, the fastest first.
func available() []kernel {
	var kernels []kernel
	if cpu.X86.HasAVX2 {
		avx2 := kernel{name: "avx2", dots: dotsByAVX2, estimates: estimatesByAVX2, atLeast: atLeastByAVX2, coarse: coarseByAVX2, fine: fineByAVX2}
		if cpu.X86.HasAVX512F && cpu.X86.HasAVX512VNNI {
			vnni := avx2
			vnni.name, vnni.dots = "avx512vnni", dotsByVNNI
			kernels = append(kernels, vnni)
		}
		kernels = append(kernels, avx2)
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

func estimatesByAVX2(out *[blockLen]float32, s *sketch, q *sketchQuery, centre float32) {
	if q.pairs != nil {
		estimatesPortable(out, s, q, centre)
		return
	}
	rows := len(q.tables) / 32
	_ = s.signs[blockLen*rows-1]
	estimatesAVX2(&out[0], &s.signs[0], &q.tables[0], &s.bySign.factor[0], q.slope, q.offset, centre, rows, blockLen/lanes)
}

func atLeastByAVX2(bits *blockBits, estimates, sigma *[blockLen]float32, spread, floor float32) {
	atLeastAVX2((*byte)(unsafe.Pointer(bits)), &estimates[0], &sigma[0], spread, floor, blockLen/8)
}

func coarseByAVX2(sums []int32, codes []byte, places []uint16, query []int8) {
	if len(places) == 0 {
		return
	}
	_ = sums[len(places)-1]
	steps := len(query) / coarseUnit
	coarseAVX2(&sums[0], &codes[0], &places[0], &query[0], len(places), steps)
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
