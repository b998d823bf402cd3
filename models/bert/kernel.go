package bert

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// A kernel is an implementation of the engine's inner loops. Every function computes each
// row with the same operations in the same order, regardless of the number of rows in the
// call, so that a text's vector does not depend on its batch or on the number of threads.
// The results of two kernels differ in the last bits.
type kernel struct {
	name string
	// cols is the number of columns in a panel of 8-bit weights, rows the
	// largest number of rows in a tile. fcols and frows are the same for float32.
	cols, rows   int
	fcols, frows int
	// group is the number of products added in 16 bits before they widen to 32,
	// 1 if they widen at once. Packing ensures that the sums fit.
	group int
	// signed means that product8 reads activations as signed bytes.
	signed bool

	// wide means that product8 takes any number of panels at once, and applies gelu.
	wide bool

	// product8 multiplies tiles of 8-bit activations with a panel of weights.
	product8 func(*product8)
	// product32 multiplies tiles of float32 rows with one panel.
	product32 func(*product32)
	// softmax turns rows of scores into probabilities, in place.
	softmax func(*rowsArgs)
	// gelu applies x*Phi(x) to rows in place.
	gelu func(*rowsArgs)
	// quantize turns rows into bytes: x = scale*q + min.
	quantize func(*rowsArgs)
	// norm adds residual rows to rows and normalises the sums. It writes them to
	// the residual rows with one weight and bias, and over the rows with another.
	norm func(*rowsArgs)
	// transpose writes panels of fcols columns: the keys of one head.
	transpose func(*transposeArgs)

	// Attention of 8-bit models in integers, nil if the kernel lacks it. The scores are
	// product8 of quantised queries and the panels of packKeys, or product16 of the words
	// of packWords if packKeys is nil. product16 multiplies the words of softmax16 with
	// those of packValues.
	packKeys   func(*headArgs)
	packWords  func(*headArgs)
	packValues func(*headArgs)
	softmax16  func(*rowsArgs)
	product16  func(*product32)

	// Attention of 8-bit models in bfloat16, nil if the kernel lacks it. The scores are
	// productBF16 of queries and of keys that roundBF16 wrote and transpose laid out.
	// productBF16 also multiplies the rows of softmaxBF16 with the panels of packBF16.
	roundBF16   func(*headArgs)
	packBF16    func(*headArgs)
	softmaxBF16 func(*rowsArgs)
	productBF16 func(*product32)
}

// product8 is a product of tiles*rows rows of activations (x = scale*q + min,
// lda bytes apart) with panels: cols columns of depth weights, as
// [depth/4][cols][4]. Column j of row i becomes
//
//	scale[i]*wscale[j] * sum_k(q[i][k]*w[k][j]) + min[i]*wsum[j] + bias[j]
//
// with wsum the column's sum of weights times wscale. Assembly reads the
// fields by their offsets; depth is a multiple of 16.
type product8 struct {
	a      *byte
	lda    int
	scale  *float32
	min    *float32
	w      *int8
	depth  int
	wscale *float32
	wsum   *float32
	bias   *float32
	c      *float32
	ldc    int // in bytes
	rows   int
	tiles  int
	panels int // 1 unless the kernel is wide
	gelu   int // 1 to apply gelu, 0 unless the kernel is wide
}

// product32 is a product of tiles*rows rows (lda bytes apart) with a panel of
// fcols columns whose depth rows are ldb bytes apart. For product16 rows and
// panel hold pairs of words, depth counts pairs, and column j of the result is
// multiplied with scale[j]. For productBF16 they hold pairs of bfloat16, depth is a multiple of
// 16, tiles is 1, panels are depth*128 bytes apart, and row i of the result is multiplied with
// scale[i] unless scale is nil.
type product32 struct {
	a      *float32
	lda    int
	b      *float32
	ldb    int
	depth  int
	c      *float32
	ldc    int
	rows   int
	tiles  int
	scale  *float32
	panels int
}

// rowsArgs are the arguments of the functions that work row by row on rows of
// n float32s, ld bytes apart. n is a multiple of 16 except for softmax, which
// may write up to the next multiple.
type rowsArgs struct {
	x        *float32
	ld       int
	n        int
	rows     int
	residual *float32 // norm: rows ldr bytes apart
	ldr      int
	weight   *float32
	bias     *float32
	epsilon  float32
	inverse  float32 // 1/n
	q        *byte   // quantize, softmax16 and softmaxBF16: rows ldq bytes apart
	ldq      int
	scale    *float32
	min      *float32
	// norm: the weight and bias for the values that replace the rows.
	inputWeight *float32
	inputBias   *float32
}

// transposeArgs copy rows x n float32s (ld bytes apart) to panels
// [ceil(rows/cols)][n][cols], the columns past rows zero.
type transposeArgs struct {
	x    *float32
	ld   int
	n    int
	rows int
	out  *float32
	cols int
}

// headArgs are rows of n float32s, ld bytes apart: the keys or values of one
// head, n a multiple of 32.
//
// packKeys rounds each row to bytes of [-127, 127], row i times scale[i], and
// writes them to out as columns of product8's panels of 32. sum receives the
// sum of each column's bytes times its scale. bytes is scratch of n bytes for
// each row. The rows that fill up the last panel, and their scales, must be
// zero.
//
// packWords rounds all entries to words of [-limit, limit], times scale[0], as
// rows of n.
//
// packValues rounds each column to words, times a scale of its own, as
// [n/fcols][rows/2][fcols][2]; a missing last row counts as zero. scale receives the
// columns' scales divided by the 32767 that the words of softmax16 sum to.
//
// roundBF16 writes rows of n bfloat16.
//
// packBF16 writes bfloat16 as [n/32][roundUp(rows, 32)/2][32][2]; missing rows are zero.
type headArgs struct {
	x     *float32
	ld    int
	n     int
	rows  int
	bytes *byte
	out   *byte
	scale *float32
	sum   *float32
	limit float32
}

// kernelNames are the names of all kernels.
var kernelNames = []string{"amx", "avx512vnni", "avx2", "neon", "portable"}

// kernelVariable names the environment variable that forces a kernel.
const kernelVariable = "CAIRN_KERNEL"

// Kernels returns the names of the kernels that this machine can run, fastest first. The
// last one is always "portable".
func Kernels() []string {
	var names []string
	for _, k := range available() {
		names = append(names, k.name)
	}
	return names
}

// Chosen returns the name of the kernel that Open uses by default, or "" if the environment
// variable names one that this machine cannot run.
func Chosen() string {
	k, err := chooseKernel("")
	if err != nil {
		return ""
	}
	return k.name
}

// chooseKernel returns the kernel with a name. If name is empty, it returns the kernel in
// the environment variable or, if that is not set, the fastest kernel.
func chooseKernel(name string) (*kernel, error) {
	from := "kernel"
	if name == "" {
		name, from = os.Getenv(kernelVariable), kernelVariable
	}
	all := available()
	if name == "" {
		return all[0], nil
	}
	for _, k := range all {
		if k.name == name {
			return k, nil
		}
	}
	if slices.Contains(kernelNames, name) {
		return nil, fmt.Errorf("%s: this machine cannot run %q, it has %s", from, name, strings.Join(Kernels(), ", "))
	}
	return nil, fmt.Errorf("%s: unknown kernel %q, want {%s}", from, name, strings.Join(kernelNames, ","))
}
