package bert

import "golang.org/x/sys/cpu"

//go:generate go -C asm run . -kernel neon -out ../neon_arm64.s

//go:noescape
func product8NEON(p *product8)

//go:noescape
func product32NEON(p *product32)

// available returns the kernels that this machine can run, fastest first.
func available() []*kernel {
	k := portable()
	if !cpu.ARM64.HasASIMDDP {
		return []*kernel{k}
	}
	neon := *k
	neon.name, neon.signed = "neon", true
	neon.cols, neon.rows, neon.fcols, neon.frows = 16, 6, 16, 6
	neon.product8, neon.product32, neon.quantize = product8NEON, product32NEON, quantizeSigned
	return []*kernel{&neon, k}
}
