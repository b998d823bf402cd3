package bert

import "golang.org/x/sys/cpu"

//go:generate go -C asm run . -kernel avx512 -out ../avx512_amd64.s

//go:generate go -C asm run . -kernel avx2 -out ../avx2_amd64.s

//go:noescape
func product8AMX(p *product8)

//go:noescape
func productBF16(p *product32)

//go:noescape
func softmaxBF16(p *rowsArgs)

//go:noescape
func roundBF16(p *headArgs)

//go:noescape
func packBF16(p *headArgs)

//go:noescape
func product8VNNI(p *product8)

//go:noescape
func product32AVX512(p *product32)

//go:noescape
func product16VNNI(p *product32)

//go:noescape
func packKeysVNNI(p *headArgs)

//go:noescape
func packValuesVNNI(p *headArgs)

//go:noescape
func softmax16AVX512(p *rowsArgs)

//go:noescape
func softmaxAVX512(p *rowsArgs)

//go:noescape
func geluAVX512(p *rowsArgs)

//go:noescape
func quantizeAVX512(p *rowsArgs)

//go:noescape
func normAVX512(p *rowsArgs)

//go:noescape
func transposeAVX512(p *transposeArgs)

//go:noescape
func product8AVX2(p *product8)

//go:noescape
func product32AVX2(p *product32)

//go:noescape
func product16AVX2(p *product32)

//go:noescape
func packWordsAVX2(p *headArgs)

//go:noescape
func packValuesAVX2(p *headArgs)

//go:noescape
func softmaxAVX2(p *rowsArgs)

//go:noescape
func softmax16AVX2(p *rowsArgs)

//go:noescape
func geluAVX2(p *rowsArgs)

//go:noescape
func quantizeAVX2(p *rowsArgs)

//go:noescape
func normAVX2(p *rowsArgs)

// available returns the kernels that this machine can run, fastest first.
func available() []*kernel {
	var all []*kernel
	if x := &cpu.X86; x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI {
		vnni := kernel{
			name: "avx512vnni",
			cols: 32, rows: 14, fcols: 32, frows: 14, group: 1,
			product8:  product8VNNI,
			product32: product32AVX512,
			softmax:   softmaxAVX512,
			gelu:      geluAVX512,
			quantize:  quantizeAVX512,
			norm:      normAVX512,
			transpose: transposeAVX512,

			packKeys:   packKeysVNNI,
			packValues: packValuesVNNI,
			softmax16:  softmax16AVX512,
			product16:  product16VNNI,
		}
		if permitAMX() {
			amx := vnni
			amx.name, amx.product8, amx.wide, amx.rows = "amx", product8AMX, true, 1<<30
			amx.roundBF16, amx.packBF16 = roundBF16, packBF16
			amx.softmaxBF16, amx.productBF16 = softmaxBF16, productBF16
			all = append(all, &amx)
		}
		all = append(all, &vnni)
	}
	if x := &cpu.X86; x.HasAVX2 && x.HasFMA {
		all = append(all, &kernel{
			name: "avx2",
			cols: 8, rows: 8, fcols: 16, frows: 6, group: 2,
			product8:  product8AVX2,
			product32: product32AVX2,
			softmax:   softmaxAVX2,
			gelu:      geluAVX2,
			quantize:  quantizeAVX2,
			norm:      normAVX2,
			transpose: transposeGo,

			packWords:  packWordsAVX2,
			packValues: packValuesAVX2,
			softmax16:  softmax16AVX2,
			product16:  product16AVX2,
		})
	}
	return append(all, portable())
}
