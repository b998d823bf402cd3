package bert

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
)

// panelWidth is the multiple to which the number of columns is padded. It is a
// multiple of every kernel's panel, so that all kernels share one layout of
// buffers.
const panelWidth = 32

// A model is a network packed for a kernel. It is read-only after newModel.
type model struct {
	kernel               *kernel
	hidden, inner, heads int
	size, padded         int // size of a head, without and with padding
	eight                bool
	attention            func(m *model, s *scratch, head, start, end int)
	hiddenPad, innerPad  int // columns with padding
	words                table
	positions            []float32 // position plus type 0, rows of hidden
	longest              int       // rows of positions
	second               []float32 // type 1 minus type 0, for the tokens of a second text; nil without type 1
	embedNorm            packedNorm
	blocks               []block
	weights              *arena // of the blocks' matrices
	// The kernel's functions, or plain Go if they do not support hidden.
	gelu, quantize, norm func(*rowsArgs)
}

// A block is a layer's packed weights. qkv holds, head by head, the columns
// of query, key and value, each padded to panelWidth.
type block struct {
	qkv, output, up, down     *packed
	attentionNorm, outputNorm packedNorm
}

// A packedNorm is a layer normalisation. inputWeight and inputBias replace weight and bias
// in the rows that the next linear layers read as bytes.
type packedNorm struct {
	norm
	inputWeight, inputBias []float32
}

func newModel(n *network, k *kernel) (*model, error) {
	m := &model{
		kernel: k, hidden: n.hidden, inner: n.inner, heads: n.heads, size: n.hidden / n.heads,
		hiddenPad: roundUp(n.hidden, panelWidth), innerPad: roundUp(n.inner, panelWidth),
		padded: roundUp(n.hidden/n.heads, panelWidth),
		words:  n.words, longest: n.positions.rows,
		eight: n.layers[0].query.codes != nil,
		gelu:  k.gelu, quantize: k.quantize, norm: k.norm,
		weights: new(arena),
	}
	runtime.AddCleanup(m, (*arena).release, m.weights)
	m.attention = attention(k, m.eight)
	if m.hidden%16 != 0 {
		m.norm, m.quantize = normGo, quantizeGo
		if k.signed {
			m.quantize = quantizeSigned
		}
	}
	for _, v := range m.words.scales {
		if !finite(v) {
			return nil, fmt.Errorf("the scale %v of the word embeddings is not a finite number", v)
		}
	}
	m.positions = make([]float32, n.positions.rows*n.hidden)
	for i := range n.positions.rows {
		row := m.positions[i*n.hidden : (i+1)*n.hidden]
		n.positions.add(row, i)
		if n.types.rows > 0 {
			n.types.add(row, 0)
		}
	}
	if n.types.rows > 1 {
		m.second = make([]float32, n.hidden)
		first := make([]float32, n.hidden)
		n.types.add(m.second, 1)
		n.types.add(first, 0)
		for i, v := range first {
			m.second[i] -= v
		}
	}
	m.embedNorm = n.embedNorm.pack(&n.layers[0].query)
	for i := range n.layers {
		b, err := m.packLayer(&n.layers[i], float32(n.scale))
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", i, err)
		}
		next := &linear{}
		if i+1 < len(n.layers) {
			next = &n.layers[i+1].query
		}
		b.outputNorm = n.layers[i].outputNorm.pack(next)
		m.blocks = append(m.blocks, b)
	}
	return m, nil
}

func (m *model) packLayer(l *layer, scale float32) (b block, err error) {
	for _, p := range []*linear{&l.query, &l.key, &l.value, &l.output, &l.up, &l.down} {
		if (p.codes != nil) != m.eight {
			return b, fmt.Errorf("8-bit and float weights are mixed, which is not supported")
		}
	}
	if l.output.factor != nil || l.down.factor != nil || !sameInput(&l.query, &l.key) || !sameInput(&l.query, &l.value) {
		return b, errors.New("only the results of a layer normalisation may be shifted, alike for query, key and value")
	}
	threads := runtime.GOMAXPROCS(0)
	var qkv []column
	for h := range m.heads {
		from, to := h*m.size, (h+1)*m.size
		// The scale of the scores is folded into the queries.
		qkv = columnsOf(qkv, &l.query, from, to, scale, panelWidth)
		qkv = columnsOf(qkv, &l.key, from, to, 1, panelWidth)
		qkv = columnsOf(qkv, &l.value, from, to, 1, panelWidth)
	}
	for _, p := range []struct {
		to      **packed
		columns []column
	}{
		{&b.qkv, qkv},
		{&b.output, columnsOf(nil, &l.output, 0, l.output.out, 1, panelWidth)},
		{&b.up, columnsOf(nil, &l.up, 0, l.up.out, 1, panelWidth)},
		{&b.down, columnsOf(nil, &l.down, 0, l.down.out, 1, panelWidth)},
	} {
		if *p.to, err = pack(m.weights, m.kernel, p.columns, threads); err != nil {
			return b, err
		}
	}
	b.up.gelu = m.eight && m.kernel.wide
	b.attentionNorm = l.attentionNorm.pack(&l.up)
	return b, nil
}

func sameInput(a, b *linear) bool {
	return slices.Equal(a.shift, b.shift) && slices.Equal(a.factor, b.factor)
}

// pack returns n combined with the shift and factor of next, the linear layer that reads
// its results.
func (n norm) pack(next *linear) packedNorm {
	p := packedNorm{norm{copied(n.weight), copied(n.bias), n.epsilon}, copied(n.weight), copied(n.bias)}
	for i, f := range next.factor {
		p.inputWeight[i] *= f
		p.inputBias[i] = (p.inputBias[i] + next.shift[i]) * f
	}
	return p
}

func copied(v []float32) []float32 {
	out := aligned[float32](len(v))
	copy(out, v)
	return out
}
