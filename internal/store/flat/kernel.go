package flat

import (
	"fmt"
	"os"
	"strings"
)

// kernel computes dots[i] = sum over j of codes[i*stride+j] x the query's j-th
// number, for every i below len(dots). codes holds at least len(dots) x stride
// bytes; stride is a multiple of strideUnit. All kernels give the same integers.
type kernel struct {
	name string
	dots func(dots []int32, codes []byte, q *query, stride int)
}

var portable = kernel{name: "portable", dots: dotsPortable}

func dotsPortable(dots []int32, codes []byte, q *query, stride int) {
	for i := range dots {
		row, by := codes[i*stride:][:stride], q.int16[:stride]
		var a, b, c, d int32
		for len(row) >= 4 && len(by) >= 4 {
			a += int32(row[0]) * int32(by[0])
			b += int32(row[1]) * int32(by[1])
			c += int32(row[2]) * int32(by[2])
			d += int32(row[3]) * int32(by[3])
			row, by = row[4:], by[4:]
		}
		dots[i] = a + b + c + d
	}
}

// kernelVariable names the environment variable that forces a kernel, the same
// as for models/bert.
const kernelVariable = "CAIRN_KERNEL"

// Kernels returns the names of the kernels this machine runs, the fastest
// first. "portable" is always the last.
func Kernels() []string {
	var names []string
	for _, k := range available() {
		names = append(names, k.name)
	}
	return names
}

// chooseKernel returns the kernel the environment names, by default the fastest.
func chooseKernel() (kernel, error) {
	name := os.Getenv(kernelVariable)
	all := available()
	if name == "" {
		return all[0], nil
	}
	for _, k := range all {
		if k.name == name {
			return k, nil
		}
	}
	return portable, fmt.Errorf("%s: this machine cannot run %q, want {%s}", kernelVariable, name, strings.Join(Kernels(), ","))
}
