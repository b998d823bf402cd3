// Command asm writes the assembly of package bert's kernels, but for amx_amd64.s. It is a
// module of its own, so that cairn does not depend on the assembler generator:
//
//	go run . -kernel avx512 -out ../avx512_amd64.s
package main

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	log.SetFlags(0)
	kernel := flag.String("kernel", "", "avx512, avx2 or neon")
	flag.Parse() // with the flags of avo's build package
	if *kernel == "neon" {
		if err := neon(flag.Lookup("out").Value.String()); err != nil {
			log.Fatal(err)
		}
		return
	}
	ConstraintExpr("amd64")
	switch *kernel {
	case "avx512":
		avx512()
	case "avx2":
		avx2()
	default:
		log.Fatalf("unknown kernel %q, want {avx512,avx2,neon}", *kernel)
	}
	Generate()
}

// Offsets of the argument structures of package bert, whose fields take eight
// bytes each. A test there checks the offsets.
const (
	p8A, p8Lda, p8Scale, p8Min, p8W, p8Depth = 0, 8, 16, 24, 32, 40
	p8Wscale, p8Wsum, p8Bias, p8C, p8Ldc     = 48, 56, 64, 72, 80
	p8Rows, p8Tiles                          = 88, 96

	p32A, p32Lda, p32B, p32Ldb, p32Depth = 0, 8, 16, 24, 32
	p32C, p32Ldc, p32Rows, p32Tiles      = 40, 48, 56, 64
	p32Scale                             = 72

	haX, haLd, haN, haRows         = 0, 8, 16, 24
	haBytes, haOut, haScale, haSum = 32, 40, 48, 56
	haLimit                        = 64

	taX, taLd, taN, taRows, taOut = 0, 8, 16, 24, 32

	raX, raLd, raN, raRows, raResidual, raLdr = 0, 8, 16, 24, 32, 40
	raWeight, raBias, raEpsilon, raInverse    = 48, 56, 64, 68
	raQ, raLdq, raScale, raMin                = 72, 80, 88, 96
	raInputWeight, raInputBias                = 104, 112
)

// text begins a function of one pointer and returns the pointer's register.
func text(name, doc string) operand.Mem {
	TEXT(name, NOSPLIT, "func(p *byte)")
	Doc(doc)
	p := GP64()
	Load(Param("p"), p)
	return operand.Mem{Base: p}
}

// field loads the eight bytes at an offset of the arguments.
func field(p operand.Mem, offset int) reg.GPVirtual {
	r := GP64()
	MOVQ(p.Offset(offset), r)
	return r
}

// rowPointers addresses rows with one base register for every three.
type rowPointers struct {
	base []reg.GPVirtual
	ld   reg.GPVirtual
}

func newRowPointers(rows int, ld reg.GPVirtual) rowPointers {
	r := rowPointers{ld: ld}
	for i := 0; i < rows; i += 3 {
		r.base = append(r.base, GP64())
	}
	return r
}

// start points the bases at the rows that begin at a.
func (r rowPointers) start(a reg.GPVirtual) {
	for i, b := range r.base {
		if i == 0 {
			MOVQ(a, b)
			continue
		}
		LEAQ(operand.Mem{Base: r.base[i-1], Index: r.ld, Scale: 2}, b)
		ADDQ(r.ld, b)
	}
}

func (r rowPointers) row(i, offset int) operand.Mem {
	m := operand.Mem{Base: r.base[i/3], Disp: offset}
	if i%3 > 0 {
		m.Index, m.Scale = r.ld, uint8(i%3)
	}
	return m
}

func (r rowPointers) advance(n int) {
	for _, b := range r.base {
		ADDQ(operand.U32(uint32(n)), b)
	}
}

// float32Bits as a constant in memory, to broadcast.
func constants(name string, values []float32) operand.Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i, v := range values {
		DATA(4*i, operand.F32(v))
	}
	return m
}
