package bert

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"

	"cairn/models/offheap"
)

// A packed matrix holds the weights of one or more linear layers next to each
// other, in the order and layout that a kernel reads. Columns are grouped in panels;
// columns of padding have zero weights and zero bias.
type packed struct {
	depth   int // inputs, rounded up to a multiple of 16 for 8-bit weights
	columns int // outputs with padding, a multiple of the panel's width
	bias    []float32
	gelu    bool // product8 applies gelu to the results

	// 8-bit: [panel][depth/4][cols][4], and for each column a scale and the sum
	// of its weights.
	codes       []int8
	scale, sums []float32

	// float32: [panel][depth][fcols].
	floats []float32
}

// A column is one output of a linear layer, times factor; nil is padding.
type column struct {
	from   *linear
	index  int
	factor float32
}

// columnsOf appends the columns [start, end) of l to list, and padding up to
// a multiple of width.
func columnsOf(list []column, l *linear, start, end int, factor float32, width int) []column {
	for j := start; j < end; j++ {
		list = append(list, column{l, j, factor})
	}
	for len(list)%width != 0 {
		list = append(list, column{})
	}
	return list
}

// maxPairSum is the largest sum of a group of 8-bit weights of one sign: 255 times the sum
// fits into the 16 bits in which VPMADDUBSW and VPADDW add.
const maxPairSum = 32767 / 255

// pack lays out columns for k in memory of a, in threads goroutines. All
// columns must have the same depth, and be all 8-bit or all float32.
func pack(a *arena, k *kernel, columns []column, threads int) (*packed, error) {
	first := columns[0].from
	p := &packed{depth: first.in, columns: len(columns), bias: aligned[float32](len(columns))}
	width := k.fcols
	if first.codes != nil {
		width = k.cols
		p.depth = roundUp(first.in, 16)
		p.codes = a.codes(p.depth * len(columns))
		p.scale, p.sums = aligned[float32](len(columns)), aligned[float32](len(columns))
	} else {
		p.floats = a.floats(p.depth * len(columns))
	}
	panels := len(columns) / width
	errs := make([]error, threads)
	var wg sync.WaitGroup
	for t := range threads {
		wg.Go(func() {
			w, sums := make([]int32, p.depth), make([]int32, p.depth/(2*k.group))
			for i := panels * t / threads; i < panels*(t+1)/threads; i++ {
				if err := p.packPanel(k, columns, i*width, width, w, sums); err != nil {
					errs[t] = err
				}
			}
		})
	}
	wg.Wait()
	return p, errors.Join(errs...)
}

// packPanel packs width columns from column at. w holds a column of weights, and sums is
// scratch for narrow.
func (p *packed) packPanel(k *kernel, columns []column, at, width int, w, sums []int32) error {
	var total []int32
	if p.codes != nil {
		total = interleave(k, columns[at:][:width], p.codes[at*p.depth:])
	}
	for j := range width {
		c := columns[at+j]
		if c.from == nil {
			continue
		}
		p.bias[at+j] = c.from.bias[c.index] * c.factor
		if !finite(p.bias[at+j]) {
			return errors.New("a bias is not a finite number")
		}
		if p.floats != nil {
			out := p.floats[at*p.depth+j:]
			for i := range p.depth {
				v := c.from.at(i, c.index) * c.factor
				if !finite(v) {
					return errors.New("a weight is not a finite number")
				}
				out[i*width] = v
			}
			continue
		}
		if total != nil {
			scale, err := c.from.scale(c.index)
			if err != nil {
				return err
			}
			p.scale[at+j], p.sums[at+j] = scale*c.factor, scale*c.factor*float32(total[j])
			continue
		}
		scale, err := c.from.column8(w[:c.from.in], c.index)
		if err != nil {
			return err
		}
		if k.group > 1 {
			scale *= narrow(w, sums, k.group)
		}
		sum := int64(0)
		out := p.codes[at*p.depth+4*j:]
		for i, v := range w {
			out[i/4*4*width+i%4] = int8(v)
			sum += int64(v)
		}
		p.scale[at+j] = scale * c.factor
		p.sums[at+j] = scale * c.factor * float32(sum)
	}
	return nil
}

// interleave writes the weights of a panel to out row by row, in a quarter of the time of
// column8, and returns the sums of the columns. It returns nil if a code is not its weight,
// or if k needs narrower weights.
func interleave(k *kernel, columns []column, out []int8) (sums []int32) {
	l := columns[0].from
	if l == nil || l.codes == nil || k.group > 1 || l.in%4 != 0 || slices.ContainsFunc(l.zeros, func(zero int32) bool { return l.signed == (zero != 0) || zero&^128 != 0 }) {
		return nil
	}
	n := slices.IndexFunc(columns, func(c column) bool { return c.from == nil })
	if n < 0 {
		n = len(columns)
	}
	sums = make([]int32, n)
	first, flip := columns[0].index, byte(l.zeros[0])
	for i := 0; i < l.in; i += 4 {
		rows := l.codes[i*l.out+first:]
		a, b, c, d := rows[:n], rows[l.out:][:n], rows[2*l.out:][:n], rows[3*l.out:][:n]
		group := out[i*len(columns):][:4*n]
		for j := range sums {
			o := group[4*j:][:4]
			o[0], o[1], o[2], o[3] = int8(a[j]^flip), int8(b[j]^flip), int8(c[j]^flip), int8(d[j]^flip)
			sums[j] += int32(o[0]) + int32(o[1]) + int32(o[2]) + int32(o[3])
		}
	}
	return sums
}

// finite reports whether v is neither infinite nor NaN. It does not test v-v == 0, which
// fails for a product v on processors with a fused multiply-subtract, such as arm64.
func finite(v float32) bool { return math.Abs(float64(v)) <= math.MaxFloat32 }

// at returns the weight of input i in output j.
func (l *linear) at(i, j int) float32 {
	at := i*l.out + j
	if l.transposed {
		at = j*l.in + i
	}
	if l.codes == nil {
		return l.floats[at]
	}
	zero, scale := l.zeros[min(j, len(l.zeros)-1)], l.scales[min(j, len(l.scales)-1)]
	flip, offset := unsigned(l.signed, zero)
	return float32(int32(l.codes[at]^flip)-offset) * scale
}

// scale returns the scale of the codes of output j.
func (l *linear) scale(j int) (float32, error) {
	scale := l.scales[min(j, len(l.scales)-1)]
	if !finite(scale) {
		return 0, fmt.Errorf("the scale %v of weights is not a finite number", scale)
	}
	return scale, nil
}

// column8 writes the weights of output j to buf, as integers in [-128, 127] to
// be multiplied by the scale it returns. If a code is further from its zero
// point, the column is rounded to a coarser scale.
func (l *linear) column8(buf []int32, j int) (scale float32, err error) {
	if scale, err = l.scale(j); err != nil {
		return 0, err
	}
	flip, offset := unsigned(l.signed, l.zeros[min(j, len(l.zeros)-1)])
	low, high := int32(0), int32(0)
	at := j
	for i := range buf {
		v := int32(l.codes[at]^flip) - offset
		buf[i] = v
		low, high = min(low, v), max(high, v)
		at += l.out
	}
	if low >= -128 && high <= 127 {
		return scale, nil
	}
	f := float32(max(-low, high)) / 127
	for i, v := range buf {
		buf[i] = rounded(v, f)
	}
	return scale * f, nil
}

// narrow rounds a column's weights to a coarser scale if a group of products with bytes
// could overflow 16 bits. It returns the ratio of the new scale to the old one. A group
// has 2*group weights: the pairs at the same position of group consecutive quadruples, as
// added by product8. len(w) is a multiple of 4*group. sums is scratch for two numbers for
// each 4*group weights.
func narrow(w, sums []int32, group int) float32 {
	worst := groupSums(w, sums, group)
	if worst <= maxPairSum {
		return 1
	}
	f := float32(worst) / (maxPairSum + 0.5)
	// Rounding changes the sum of a group by at most group, so only these can overflow.
	var large []int
	for g, sum := range sums {
		if float32(sum)/f > float32(maxPairSum-group-1) {
			large = append(large, g)
		}
	}
	overflows := func(g int) bool {
		up, down := int32(0), int32(0)
		for at := g / 2 * 4 * group; at < (g/2+1)*4*group; at += 4 {
			for _, v := range w[at+g%2*2:][:2] {
				v = rounded(v, f)
				up, down = up+max(v, 0), down-min(v, 0)
			}
		}
		return max(up, down) > maxPairSum
	}
	for slices.ContainsFunc(large, overflows) {
		f *= 1.005
	}
	for i, v := range w {
		w[i] = rounded(v, f)
	}
	return f
}

// groupSums computes the sum of the positive or of the negative weights of each group,
// whichever is larger without its sign, and returns the largest.
func groupSums(w, sums []int32, group int) (worst int32) {
	for g := 0; len(w) > 0; g, w = g+2, w[4*group:] {
		var up, down, up1, down1 int32
		for q := w[:4*group]; len(q) >= 4; q = q[4:] {
			up += max(q[0], 0) + max(q[1], 0)
			down -= min(q[0], 0) + min(q[1], 0)
			up1 += max(q[2], 0) + max(q[3], 0)
			down1 -= min(q[2], 0) + min(q[3], 0)
		}
		sums[g], sums[g+1] = max(up, down), max(up1, down1)
		worst = max(worst, sums[g], sums[g+1])
	}
	return worst
}

func rounded(v int32, f float32) int32 {
	return int32(math.RoundToEven(float64(float32(v) / f)))
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// aligned returns n zero entries that start at a cache line, so that no vector load crosses
// two.
func aligned[T byte | float32](n int) []T {
	if n == 0 {
		return nil
	}
	var entry T
	size := int(unsafe.Sizeof(entry))
	s := make([]T, n+64/size)
	skip := int(-uintptr(unsafe.Pointer(&s[0]))&63) / size
	return s[skip : skip+n : skip+n]
}

// An arena allocates the memory of packed weights from a few large pieces, in huge pages
// if the operating system supports them. Each forward pass reads all the weights, which
// takes most of the time of a short query. With pages of 4 KiB it takes a fifth to a
// quarter longer.
//
// The memory is outside of Go's heap.
type arena struct {
	free   []byte
	pieces [][]byte
}

const arenaPiece = 3 * offheap.HugePage

// bytes returns n zero bytes that start at a cache line.
func (a *arena) bytes(n int) []byte {
	size := roundUp(n, 64)
	if size > len(a.free) {
		piece := offheap.Allocate(roundUp(size, arenaPiece) + offheap.HugePage)
		a.pieces = append(a.pieces, piece)
		skip := int(-uintptr(unsafe.Pointer(&piece[0])) & (offheap.HugePage - 1))
		a.free = piece[skip : len(piece)-offheap.HugePage+skip]
	}
	out := a.free[:n:n]
	a.free = a.free[size:]
	return out
}

// release frees the memory.
func (a *arena) release() {
	for _, piece := range a.pieces {
		offheap.Free(piece)
	}
}

func (a *arena) codes(n int) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(a.bytes(n)))), n)
}

func (a *arena) floats(n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(a.bytes(4*n)))), n)
}
