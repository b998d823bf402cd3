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
func (n *network) adapt(file []byte) error {
	if len(file) < 4 {
		return errAdapter
	}
	rank := int(binary.LittleEndian.Uint32(file))
	if rank%4 != 0 {
		return errAdapter
	}
	file = file[4:]
	vector := func(length int) (v []float32) {
		if len(file) < 4+length {
			return nil
		}
		scale := math.Float32frombits(binary.LittleEndian.Uint32(file))
		v = make([]float32, length)
		for i, code := range file[4 : 4+length] {
			v[i] = float32(int8(code)) * scale
		}
		file = file[4+length:]
		return v
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range n.layers {
		l := &n.layers[i]
		for _, w := range []*linear{&l.query, &l.key, &l.value, &l.output, &l.up, &l.down} {
			var a, b [][]float32
			for range rank {
				column, row := vector(w.in), vector(w.out)
				if column == nil || row == nil {
					return errAdapter
				}
				a, b = append(a, column), append(b, row)
			}
			if w.codes == nil || w.transposed {
				return errors.New("an adapter needs 8-bit weights")
			}
			wg.Go(func() { w.add(a, b) })
		}
	}
	if len(file) > 0 {
		return errAdapter
	}
	return nil
}

// add adds the product of the columns a and the rows b to the weights.
func (l *linear) add(a, b [][]float32) {
	codes, bias := make([]byte, len(l.codes)), slices.Clone(l.bias)
	steps, offsets, row := make([]float32, l.out), make([]int32, l.out), make([]float32, l.out)
	var flip byte
	for j := range steps {
		flip, offsets[j] = unsigned(l.signed, l.zeros[min(j, len(l.zeros)-1)])
		steps[j] = 1 / l.scales[min(j, len(l.scales)-1)]
	}
	for i := range l.in {
		clear(row)
		for r := 0; r < len(a); r += 4 {
			addTo(row, [4]float32{a[r][i], a[r+1][i], a[r+2][i], a[r+3][i]}, b[r:r+4])
		}
		// The layer reads (x + shift) * factor in place of x.
		factor := float32(1)
		if l.factor != nil {
			factor = 1 / l.factor[i]
			for j, v := range row {
				bias[j] -= l.shift[i] * v
			}
		}
		to, steps, offsets := codes[i*l.out:][:l.out], steps[:l.out], offsets[:l.out]
		for j, code := range l.codes[i*l.out:][:l.out] {
			const round = 3 << 22 // float32 numbers of this size have no fractions
			change := int32(math.Float32bits(row[j]*factor*steps[j]+round)) - int32(math.Float32bits(round))
			to[j] = byte(max(-127, min(int32(code^flip)-offsets[j]+change, 127)))
		}
	}
	l.codes, l.bias, l.signed, l.zeros = codes, bias, true, []int32{0}
}

// addTo adds the sum of four vectors v, each times its x, to sum.
func addTo(sum []float32, x [4]float32, v [][]float32) {
	a, b, c, d := v[0][:len(sum)], v[1][:len(sum)], v[2][:len(sum)], v[3][:len(sum)]
	for j := range sum {
		sum[j] = sum[j] + (x[0]*a[j] + x[1]*b[j]) + (x[2]*c[j] + x[3]*d[j])
	}
}
