package flat

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// kernel is one implementation of the inner loops. All kernels return the same numbers.
//
// dots sets dots[i] to the sum over j of codes[i*stride+j] x the query's number j. codes
// has at least len(dots) x stride bytes; stride is a multiple of strideUnit. The other
// functions are described at their portable forms.
type kernel struct {
	name      string
	dots      func(dots []int32, codes []byte, q *query, stride int)
	estimates func(out *[blockLen]float32, s *sketch, q *sketchQuery, centre float32)
	atLeast   func(bits *blockBits, estimates, sigma *[blockLen]float32, spread, floor float32)
	coarse    func(sums []int32, codes []byte, places []uint16, query []int8)
	fine      func(query []int16, codes, low []byte) int64
	pairs     bool // estimates needs the pairs of a sketchQuery
}

// blockBits has a bit for each vector of a block.
type blockBits [blockLen / 64]uint64

var portable = kernel{name: "portable", dots: dotsPortable, estimates: estimatesPortable, atLeast: atLeastPortable, coarse: coarsePortable, fine: finePortable, pairs: true}

func dotsPortable(dots []int32, codes []byte, q *query, stride int) {
	for i := range dots {
		row, by := codes[i*stride:][:stride], q.int16[:stride]
		var sum int32
		for len(row) >= 16 && len(by) >= 16 { // stride is a multiple; arrays need no bounds checks
			x, y := (*[16]byte)(row), (*[16]int16)(by)
			a := int32(x[0])*int32(y[0]) + int32(x[1])*int32(y[1]) + int32(x[2])*int32(y[2]) + int32(x[3])*int32(y[3])
			b := int32(x[4])*int32(y[4]) + int32(x[5])*int32(y[5]) + int32(x[6])*int32(y[6]) + int32(x[7])*int32(y[7])
			c := int32(x[8])*int32(y[8]) + int32(x[9])*int32(y[9]) + int32(x[10])*int32(y[10]) + int32(x[11])*int32(y[11])
			d := int32(x[12])*int32(y[12]) + int32(x[13])*int32(y[13]) + int32(x[14])*int32(y[14]) + int32(x[15])*int32(y[15])
			sum += a + b + (c + d)
			row, by = row[16:], by[16:]
		}
		dots[i] = sum
	}
}

// kernelVariable names the environment variable that forces a kernel, the same
// as for models/bert.
const kernelVariable = "CAIRN_KERNEL"

// chooseKernel returns the kernel that the environment names, or else the fastest.
func chooseKernel() (kernel, error) {
	name := os.Getenv(kernelVariable)
	all := available()
	// The encoder has more kernels, and returns an error if the machine cannot run them.
	if slices.Contains([]string{"", "amx", "neon"}, name) {
		return all[0], nil
	}
	var names []string
	for _, k := range all {
		if k.name == name {
			return k, nil
		}
		names = append(names, k.name)
	}
	return portable, fmt.Errorf("%s: this machine cannot run %q, want {%s}", kernelVariable, name, strings.Join(names, ","))
}
