package bert

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A network is a BERT encoder as read from the graph. The weights have the form
// of the file; their shapes agree.
type network struct {
	words, positions, types table // types has no rows if the model has no types
	embedNorm               norm
	layers                  []layer
	hidden, inner, heads    int
	// scale is the factor of the attention scores, 1/sqrt(hidden/heads) in every
	// published BERT.
	scale float64
}

// A layer is one transformer block, post-norm as in Devlin et al. 2018.
type layer struct {
	query, key, value, output linear
	up, down                  linear
	attentionNorm, outputNorm norm
}

// A norm is a layer normalisation's parameters.
type norm struct {
	weight, bias []float32
	epsilon      float64
}

// A linear is a layer y = xW + b. W is in x out, row-major, either 8-bit (codes, where
// value = (code - zero) * scale) or float32 (floats). A transposed W is out x in.
type linear struct {
	in, out    int
	codes      []byte
	signed     bool
	zeros      []int32   // one, or one for each output
	scales     []float32 // one, or one for each output
	floats     []float32
	transposed bool
	bias       []float32
	// If not nil, x is (input + shift) * factor.
	shift, factor []float32
}

// A table is an embedding: rows x width, 8-bit or float32 as in linear, with
// one zero point, and one scale or one for each row; or blocks of 4-bit weights.
type table struct {
	rows, width int
	blocks      []byte
	codes       []byte
	signed      bool
	zero        int32
	scales      []float32
	floats      []float32
}

// add adds row r to dst.
func (t *table) add(dst []float32, r int) {
	if t.floats != nil {
		for i, v := range t.floats[r*t.width : (r+1)*t.width] {
			dst[i] += v
		}
		return
	}
	if t.blocks != nil {
		addBlocks(dst[:t.width], t.blocks[r*t.width/q4Weights*q4Block:])
		return
	}
	row := t.codes[r*t.width : (r+1)*t.width]
	scale := t.scales[min(r, len(t.scales)-1)]
	flip, zero := unsigned(t.signed, t.zero)
	for i, c := range row {
		dst[i] += float32(int32(c^flip)-zero) * scale
	}
}

// unsigned returns how to read a signed or an unsigned code c with a zero point: its value is
// int32(c^flip) - offset.
func unsigned(signed bool, zero int32) (flip byte, offset int32) {
	if signed { // c ^ 0x80 is c + 128
		return 0x80, zero + 128
	}
	return 0, zero
}

// readNetwork reads an output of the graph with match, the first for which that succeeds.
func readNetwork(g *graph, match func(m *matcher, output string) (*network, error)) (*network, error) {
	err := errors.New("the graph has no output")
	for _, o := range g.outputs {
		n, e := match(&matcher{graph: g, steps: 1 << 20}, o)
		if e == nil {
			return n, nil
		}
		// The error for the output of token states is the most useful.
		if o == "last_hidden_state" || o == g.outputs[0] {
			err = fmt.Errorf("output %q: %w", o, e)
		}
	}
	return nil, err
}

// matchNetwork reads the encoder. It walks back from the last layer normalisation to the
// embeddings and collects the weights on the path, regardless of their names.
func matchNetwork(m *matcher, output string) (*network, error) {
	n := &network{}
	at, weights := output, 0
	for {
		post, in, err := m.norm(at)
		if err != nil {
			return nil, fmt.Errorf("%d layers from the end: %w", len(n.layers), err)
		}
		l, input, err := m.layer(in, n)
		if err == errNoLayer {
			n.embedNorm = post
			if err := m.embeddings(in, n, 4); err != nil {
				return nil, err
			}
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%d layers from the end: %w", len(n.layers), err)
		}
		l.outputNorm = post
		// Every weight takes at least one byte of the file. A graph with a cycle or with
		// shared weights must not exhaust the memory.
		for _, w := range []*linear{&l.query, &l.key, &l.value, &l.output, &l.up, &l.down} {
			if weights += w.in * w.out; weights > m.size {
				return nil, errors.New("layers share weights, which is not supported")
			}
		}
		n.layers = append(n.layers, l)
		at = input
	}
	slices.Reverse(n.layers)
	return n, n.check()
}

// minHead is the smallest supported head size. Heads are padded to panelWidth, so smaller
// heads would take many times the size of the file. Published BERTs have heads of 20 or
// more.
const minHead = 8

// check returns an error if the shapes are inconsistent. Later steps rely on it for every
// index into a weight.
func (n *network) check() error {
	if len(n.layers) == 0 {
		return errors.New("no transformer layer found")
	}
	n.hidden, n.inner = n.words.width, n.layers[0].up.out
	h := n.hidden
	switch {
	case h < 1 || h > 1<<14 || n.inner < 1 || n.inner > 1<<16:
		return fmt.Errorf("hidden size %d, inner size %d: out of range", h, n.inner)
	case n.words.rows < 1 || n.positions.rows < 1:
		return fmt.Errorf("%d words, %d positions: an embedding is empty", n.words.rows, n.positions.rows)
	case n.positions.width != h || (n.types.rows > 0 && n.types.width != h):
		return fmt.Errorf("embeddings of %d, %d and %d numbers, want equal", h, n.positions.width, n.types.width)
	case n.heads < 1:
		return errors.New("the graph does not specify the number of heads")
	case h%n.heads != 0 || h/n.heads < minHead:
		return fmt.Errorf("hidden size %d does not divide into %d heads of at least %d", h, n.heads, minHead)
	}
	if n.scale == 0 {
		n.scale = 1 / math.Sqrt(float64(h/n.heads))
	}
	norms := []norm{n.embedNorm}
	for i, l := range n.layers {
		norms = append(norms, l.attentionNorm, l.outputNorm)
		for _, w := range []struct {
			name    string
			l       linear
			in, out int
		}{
			{"query", l.query, h, h}, {"key", l.key, h, h}, {"value", l.value, h, h},
			{"attention output", l.output, h, h}, {"intermediate", l.up, h, n.inner}, {"output", l.down, n.inner, h},
		} {
			if w.l.in != w.in || w.l.out != w.out {
				return fmt.Errorf("layer %d, %s: %d x %d, want %d x %d", i, w.name, w.l.in, w.l.out, w.in, w.out)
			}
		}
	}
	for _, p := range norms {
		if len(p.weight) != h || len(p.bias) != h {
			return fmt.Errorf("layer normalisation of %d weights and %d biases, want %d", len(p.weight), len(p.bias), h)
		}
	}
	return nil
}
