package bert

import (
	"errors"
	"fmt"
	"math"
)

// errNoLayer ends the walk back through the layers.
var errNoLayer = errors.New("not the end of a transformer layer")

// A matcher recognises the pieces of an encoder in a graph, going from a
// result back to what it was computed from. steps bounds the walk: a hostile
// graph may hold cycles or be endlessly branched.
type matcher struct {
	*graph
	steps int
}

// node returns what computes tensor name, past operations that change no
// value; nil if it is a constant, an input, or the budget is spent.
func (m *matcher) node(name string) *node {
	for m.steps > 0 {
		m.steps--
		n := m.producer[name]
		if n == nil || len(n.inputs) == 0 {
			return nil
		}
		switch n.op {
		case "Identity", "Cast", "Dropout":
			name = n.inputs[0]
			continue
		}
		return n
	}
	return nil
}

// origin returns the name of the tensor behind operations that change no value.
func (m *matcher) origin(name string) string {
	for m.steps > 0 {
		m.steps--
		n := m.producer[name]
		if n == nil || len(n.inputs) == 0 {
			break
		}
		switch n.op {
		case "Identity", "Cast", "Dropout":
			name = n.inputs[0]
			continue
		}
		break
	}
	return name
}

// constant returns the constant called name, through Identity, or nil.
func (m *matcher) constant(name string) *tensor { return m.constants[m.origin(name)] }

// vector returns the constant 1-D float tensor called name.
func (m *matcher) vector(name string) ([]float32, bool) {
	t := m.constant(name)
	if t == nil || len(t.dims) != 1 || t.dims[0] < 1 {
		return nil, false
	}
	v, err := t.float32s()
	return v, err == nil
}

// split returns the constant vector among the two inputs of n and the name of
// the other input.
func (m *matcher) split(n *node) (v []float32, other string, ok bool) {
	if n == nil || len(n.inputs) != 2 {
		return nil, "", false
	}
	if v, ok := m.vector(n.inputs[0]); ok {
		return v, n.inputs[1], true
	}
	v, ok = m.vector(n.inputs[1])
	return v, n.inputs[0], ok
}

// scalar returns the constant number among the two inputs of n and the other.
func (m *matcher) scalar(n *node) (v float64, other string, ok bool) {
	if n == nil || len(n.inputs) != 2 {
		return 0, "", false
	}
	for i := 1; i >= 0; i-- {
		if t := m.constant(n.inputs[i]); t != nil {
			if v, ok := t.scalar(); ok {
				return v, n.inputs[1-i], true
			}
		}
	}
	return 0, "", false
}

// norm recognises a layer normalisation that yields name, fused or in the
// nine operations PyTorch exports, and returns its input.
func (m *matcher) norm(name string) (norm, string, error) {
	n := m.node(name)
	if n == nil {
		return norm{}, "", fmt.Errorf("%q: nothing computes it, want a layer normalisation", name)
	}
	if n.op == "LayerNormalization" && len(n.inputs) == 3 {
		w, ok1 := m.vector(n.inputs[1])
		b, ok2 := m.vector(n.inputs[2])
		if !ok1 || !ok2 {
			return norm{}, "", fmt.Errorf("%q: layer normalisation without constant weights", name)
		}
		eps, ok := n.floats["epsilon"]
		if !ok {
			eps = 1e-5
		}
		return norm{w, b, eps}, n.inputs[0], nil
	}
	fail := func() (norm, string, error) {
		return norm{}, "", fmt.Errorf("%q: %s is not the end of a layer normalisation", name, n.op)
	}
	bias, scaled, ok := m.split(n)
	if !ok || n.op != "Add" {
		return fail()
	}
	mul := m.node(scaled)
	weight, unit, ok := m.split(mul)
	if !ok || mul.op != "Mul" {
		return fail()
	}
	div := m.node(unit)
	if div == nil || div.op != "Div" || len(div.inputs) != 2 {
		return fail()
	}
	sub, sqrt := m.node(div.inputs[0]), m.node(div.inputs[1])
	if sub == nil || sub.op != "Sub" || sqrt == nil || sqrt.op != "Sqrt" {
		return fail()
	}
	add := m.node(sqrt.inputs[0])
	eps, _, ok := m.scalar(add)
	if !ok || add.op != "Add" {
		return fail()
	}
	return norm{weight, bias, eps}, sub.inputs[0], nil
}

// layer recognises the block whose sum before the last normalisation is name,
// and returns the tensor the block starts from. It notes heads and scale in n.
func (m *matcher) layer(name string, n *network) (l layer, input string, err error) {
	down, residual, ok := m.residual(name)
	if !ok {
		return l, "", errNoLayer
	}
	l.down = down.linear
	activated, err := m.gelu(down.input)
	if err != nil {
		return l, "", err
	}
	up, ok, err := m.linear(activated)
	if err != nil || !ok {
		return l, "", fmt.Errorf("intermediate weights: %w", orMissing(err))
	}
	l.up = up.linear
	if m.origin(up.input) != m.origin(residual) {
		return l, "", errors.New("the feed-forward input is not its residual (pre-norm encoders are not supported)")
	}
	norm, sum, err := m.norm(residual)
	if err != nil {
		return l, "", fmt.Errorf("attention: %w", err)
	}
	l.attentionNorm = norm
	out, residual, ok := m.residual(sum)
	if !ok {
		return l, "", errors.New("attention: no output projection next to a residual")
	}
	l.output = out.linear
	if err := m.attention(out.input, m.origin(residual), &l, n); err != nil {
		return l, "", fmt.Errorf("attention: %w", err)
	}
	return l, residual, nil
}

func orMissing(err error) error {
	if err == nil {
		return errors.New("not found")
	}
	return err
}

// residual recognises Add(linear, other) in either order.
func (m *matcher) residual(name string) (applied, string, bool) {
	n := m.node(name)
	if n == nil || n.op != "Add" || len(n.inputs) != 2 {
		return applied{}, "", false
	}
	for i := range 2 {
		if a, ok, err := m.linear(n.inputs[i]); ok && err == nil {
			return a, n.inputs[1-i], true
		}
	}
	return applied{}, "", false
}

// gelu recognises x * Phi(x) with the exact error function and returns x.
func (m *matcher) gelu(name string) (string, error) {
	n := m.node(name)
	if n == nil {
		return "", errors.New("no activation between the feed-forward weights")
	}
	if n.op == "Gelu" || n.op == "FastGelu" {
		if n.op == "FastGelu" || n.strings["approximate"] == "tanh" {
			return "", errors.New("activation: gelu by tanh is not supported, want gelu by erf")
		}
		return n.inputs[0], nil
	}
	// Products of x, 0.5 and 1 + erf(x/sqrt 2), in any order: the argument of
	// the only Erf among the factors, without its division, is x.
	var find func(name string, depth int) (string, bool)
	find = func(name string, depth int) (string, bool) {
		n := m.node(name)
		if n == nil || depth == 0 {
			return "", false
		}
		switch n.op {
		case "Erf":
			a := m.node(n.inputs[0])
			v, x, ok := m.scalar(a)
			if ok && (a.op == "Div" && math.Abs(v-math.Sqrt2) < 1e-3 || a.op == "Mul" && math.Abs(v-1/math.Sqrt2) < 1e-3) {
				return x, true
			}
		case "Mul", "Add":
			for _, in := range n.inputs {
				if x, ok := find(in, depth-1); ok {
					return x, true
				}
			}
		}
		return "", false
	}
	if x, ok := find(name, 4); ok && n.op == "Mul" {
		return x, nil
	}
	return "", fmt.Errorf("activation ends in %s, want gelu by erf", n.op)
}
