package bert

import (
	"errors"
	"fmt"
)

// attention recognises softmax(QK^T * scale + mask) V below name, with Q, K
// and V computed from the tensor input.
func (m *matcher) attention(name, input string, l *layer, n *network) error {
	pv := m.past(name, "Reshape", "Transpose")
	if pv == nil || pv.op != "MatMul" || len(pv.inputs) != 2 {
		return errors.New("no product of probabilities and values")
	}
	softmax := m.past(pv.inputs[0])
	if softmax == nil || softmax.op != "Softmax" {
		return errors.New("no softmax")
	}
	qk, scale, known := m.scores(softmax.inputs[0], 8)
	if qk == nil {
		return errors.New("no product of queries and keys")
	}
	for _, p := range []struct {
		name string
		at   string
		to   *linear
	}{{"query", qk.inputs[0], &l.query}, {"key", qk.inputs[1], &l.key}, {"value", pv.inputs[1], &l.value}} {
		a, s, ok, err := m.projection(p.at, n, 12)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if m.origin(a.input) != input {
			return fmt.Errorf("%s: computed from %q, want %q", p.name, a.input, input)
		}
		*p.to = a.linear
		scale *= s
		known = known && ok
	}
	if !known {
		return nil // computed from shapes: the standard 1/sqrt(head size)
	}
	if n.scale != 0 && n.scale != scale {
		return fmt.Errorf("scores scaled by %g, another layer's by %g", scale, n.scale)
	}
	n.scale = scale
	return nil
}

// past returns the node that computes name behind operations of the given kinds.
func (m *matcher) past(name string, ops ...string) *node {
	for {
		n := m.node(name)
		if n == nil {
			return nil
		}
		skip := false
		for _, op := range ops {
			skip = skip || n.op == op
		}
		if !skip {
			return n
		}
		name = n.inputs[0]
	}
}

// scores finds the product of queries and keys below a softmax, past the mask
// and the scaling. known is false if a factor is not a constant.
func (m *matcher) scores(name string, depth int) (qk *node, scale float64, known bool) {
	n := m.node(name)
	if n == nil || depth == 0 {
		return nil, 0, false
	}
	switch n.op {
	case "MatMul":
		if len(n.inputs) == 2 {
			return n, 1, true
		}
	case "Add", "Where":
		for _, in := range n.inputs {
			if qk, s, k := m.scores(in, depth-1); qk != nil {
				return qk, s, k
			}
		}
	case "Mul", "Div":
		return scaled(m, n, func(in string) (*node, float64, bool) { return m.scores(in, depth-1) })
	}
	return nil, 0, false
}

// scaled follows a product or quotient with a number to what is scaled.
func scaled(m *matcher, n *node, next func(string) (*node, float64, bool)) (*node, float64, bool) {
	if v, other, ok := m.scalar(n); ok && v != 0 {
		if n.op == "Div" {
			v = 1 / v
		}
		at, s, known := next(other)
		return at, s * v, known
	}
	for _, in := range n.inputs {
		if at, s, _ := next(in); at != nil {
			return at, s, false
		}
	}
	return nil, 0, false
}

// projection finds the linear layer behind the head split of a query, key or
// value, and the number of heads in the split's shape.
func (m *matcher) projection(name string, n *network, depth int) (a applied, scale float64, known bool, err error) {
	if a, ok, err := m.linear(name); ok || err != nil {
		return a, 1, true, err
	}
	at := m.node(name)
	if at == nil || depth == 0 {
		return a, 0, false, errors.New("no weights found")
	}
	switch at.op {
	case "Transpose":
		return m.projection(at.inputs[0], n, depth-1)
	case "Reshape":
		if len(at.inputs) == 2 {
			if h := m.heads(at.inputs[1]); h > 0 {
				n.heads = h
			}
		}
		return m.projection(at.inputs[0], n, depth-1)
	case "Mul", "Div":
		if v, other, ok := m.scalar(at); ok && v != 0 {
			if at.op == "Div" {
				v = 1 / v
			}
			a, s, k, err := m.projection(other, n, depth-1)
			return a, s * v, k, err
		}
		for _, in := range at.inputs {
			if a, s, _, err := m.projection(in, n, depth-1); err == nil {
				return a, s, false, nil
			}
		}
	}
	return a, 0, false, fmt.Errorf("unexpected %s between weights and scores", at.op)
}

// heads reads the number of heads from a head split's shape [batch, tokens,
// heads, size], constant as a whole or put together from constants; 0 if it is
// not that.
func (m *matcher) heads(shape string) int {
	if t := m.constant(shape); t != nil {
		if v, ok := t.integers(); ok && len(v) == 4 && v[2] > 0 && v[2] < 1<<14 {
			return int(v[2])
		}
		return 0
	}
	n := m.node(shape)
	if n == nil || n.op != "Concat" {
		return 0
	}
	if len(n.inputs) == 4 {
		if t := m.constant(n.inputs[2]); t != nil {
			if v, ok := t.scalar(); ok && v > 0 && v < 1<<14 {
				return int(v)
			}
		}
	}
	return 0
}

// embeddings recognises the sum of word, position and type embeddings.
func (m *matcher) embeddings(name string, n *network) error {
	var walk func(name string, depth int) error
	walk = func(name string, depth int) error {
		at := m.node(name)
		if at == nil || depth == 0 {
			return fmt.Errorf("embeddings: %q is neither a table nor a sum", name)
		}
		if at.op == "Add" {
			for _, in := range at.inputs {
				if err := walk(in, depth-1); err != nil {
					return err
				}
			}
			return nil
		}
		return m.lookup(at, n)
	}
	return walk(name, 4)
}

// lookup reads one embedding table: a Gather, dequantised before or after.
func (m *matcher) lookup(at *node, n *network) error {
	var scale, zero string
	if at.op == "DequantizeLinear" {
		if len(at.inputs) < 2 {
			return errors.New("embeddings: a dequantisation without scale")
		}
		scale = at.inputs[1]
		if len(at.inputs) > 2 {
			zero = at.inputs[2]
		}
		if at = m.node(at.inputs[0]); at == nil {
			return errors.New("embeddings: no table")
		}
	}
	if at.op != "Gather" || len(at.inputs) != 2 {
		return fmt.Errorf("embeddings: unexpected %s, want Gather", at.op)
	}
	source := at.inputs[0]
	if d := m.node(source); scale == "" && d != nil && d.op == "DequantizeLinear" && len(d.inputs) > 1 {
		source, scale = d.inputs[0], d.inputs[1]
		if len(d.inputs) > 2 {
			zero = d.inputs[2]
		}
	}
	w := m.constant(source)
	if w == nil || len(w.dims) != 2 {
		return errors.New("embeddings: the table is not a constant of two dimensions")
	}
	t := table{rows: w.dims[0], width: w.dims[1]}
	var err error
	if scale == "" {
		t.floats, err = w.float32s()
	} else {
		t.codes, t.signed, err = w.bytes()
		if err == nil {
			t.scale, t.zero, err = m.tableScale(scale, zero)
		}
	}
	if err != nil {
		return fmt.Errorf("embeddings: %w", err)
	}
	// The word table is looked up by input_ids; the type table, of two rows in
	// every BERT, by token_type_ids or a constant; positions by the rest.
	switch from := m.origin(at.inputs[1]); {
	case from == "input_ids":
		n.words = t
	case from == "token_type_ids" || t.rows <= 4:
		n.types = t
	default:
		n.positions = t
	}
	return nil
}

func (m *matcher) tableScale(scale, zero string) (float32, int32, error) {
	t := m.constant(scale)
	if t == nil {
		return 0, 0, errors.New("the scale is not a constant")
	}
	s, ok := t.scalar()
	if !ok {
		return 0, 0, errors.New("the scale is not one number")
	}
	z, err := m.zeros(zero)
	if err != nil {
		return 0, 0, err
	}
	if len(z) != 1 {
		return 0, 0, errors.New("the zero point is not one number")
	}
	return float32(s), z[0], nil
}
