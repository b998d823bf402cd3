package bert

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
)

// errAdapter reports an adapter that does not fit the network.
var errAdapter = errors.New("the adapter does not fit the model")

// adapt adds changes of low rank to the weights of the linear layers: W + AB, with A of
// in x rank and B of rank x out (Hu et al. 2021, LoRA). The file has the rank, a multiple
// of four, in 4 bytes. For query, key, value, output, up and down of each layer, the columns of A
// follow, each with the row of B that it is multiplied by. A column or a row is its scale, a
// float32, and a signed byte for each number. Numbers are little-endian.
//
// Weights keep their scales, and with them the rounding of the original weights. So no weight
// exceeds 127 times its scale.
func (n *network) adapt(file []byte, k *kernel) error {
	if len(file) < 4 {
		return errAdapter
	}
	rank := int(binary.LittleEndian.Uint32(file))
	if rank == 0 || rank%4 != 0 {
		return errAdapter
	}
	file = file[4:]
	// vector writes the next length numbers to every step-th entry of v.
	vector := func(length int, v []float32, step int) bool {
		if len(file) < 4+length {
			return false
		}
		scale := math.Float32frombits(binary.LittleEndian.Uint32(file))
		for i, code := range file[4 : 4+length] {
			v[i*step] = float32(int8(code)) * scale
		}
		file = file[4+length:]
		return true
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range n.layers {
		l := &n.layers[i]
		for _, w := range []*linear{&l.query, &l.key, &l.value, &l.output, &l.up, &l.down} {
			if rank > len(file)/(w.in+w.out) {
				return errAdapter
			}
			a := matrix{make([]float32, w.in*rank), rank}
			b := matrix{make([]float32, rank*roundUp(w.out, panelWidth)), roundUp(w.out, panelWidth)}
			for r := range rank {
				if !vector(w.in, a.data[r:], rank) || !vector(w.out, b.data[r*b.stride:], 1) {
					return errAdapter
				}
			}
			if w.codes == nil || w.transposed {
				return errors.New("an adapter needs 8-bit weights")
			}
			wg.Go(func() { w.add(a, b, k) })
		}
	}
	if len(file) > 0 {
		return errAdapter
	}
	return nil
}

// add adds the product of the rows a and the panels of the rows b to the weights.
func (l *linear) add(a, b matrix, k *kernel) {
	codes, bias := make([]byte, len(l.codes)), slices.Clone(l.bias)
	steps, offsets := make([]float32, l.out), make([]int32, l.out)
	var flip byte
	for j := range steps {
		flip, offsets[j] = unsigned(l.signed, l.zeros[min(j, len(l.zeros)-1)])
		steps[j] = 1 / l.scales[min(j, len(l.scales)-1)]
	}
	const block = 48 // rows whose changes fit into the second-level cache
	changes, s := matrix{make([]float32, block*b.stride), b.stride}, new(scratch)
	for i := range l.in {
		if i%block == 0 {
			for j := 0; j < l.out; j += k.fcols {
				k.multiply(s, matrix{a.data[i*a.stride:], a.stride}, a.stride, matrix{b.data[j:], b.stride}, matrix{changes.data[j:], b.stride}, min(block, l.in-i))
			}
		}
		row := changes.data[i%block*b.stride:][:l.out]
		// The layer reads (x + shift) * factor in place of x.
		factor := float32(1)
		if l.factor != nil {
			factor = 1 / l.factor[i]
			for j, v := range row {
				bias[j] -= l.shift[i] * v
			}
		}
		change(codes[i*l.out:][:l.out], l.codes[i*l.out:][:l.out], flip, offsets, row, steps, factor)
	}
	l.codes, l.bias, l.signed, l.zeros = codes, bias, true, []int32{0}
}

// change writes codes to to, each with the change of row times factor and step. Inlined, the compiler
// would keep its slices in memory instead of registers.
//
//go:noinline
func change(to, codes []byte, flip byte, offsets []int32, row, steps []float32, factor float32) {
	const round = 3 << 22 // float32 numbers of this size have no fractions
	to, offsets, row, steps = to[:len(codes)], offsets[:len(codes)], row[:len(codes)], steps[:len(codes)]
	for j, code := range codes {
		change := int32(math.Float32bits(row[j]*factor*steps[j]+round)) - int32(math.Float32bits(round))
		to[j] = byte(max(-127, min(int32(code^flip)-offsets[j]+change, 127)))
	}
}
