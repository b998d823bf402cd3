package bert

import (
	"errors"
	"fmt"
)

// An applied linear layer: its weights and the tensor it is applied to.
type applied struct {
	linear
	input string
}

// linear recognises xW + b in the forms exporters and quantisers write it. ok
// is false when name is something else; an error means that it is a linear
// layer whose weights cannot be read.
func (m *matcher) linear(name string) (a applied, ok bool, err error) {
	n := m.node(name)
	if n == nil {
		return a, false, nil
	}
	switch n.op {
	case "Add":
		bias, other, ok := m.split(n)
		if !ok {
			return a, false, nil
		}
		if n = m.node(other); n == nil {
			return a, false, nil
		}
		a, ok, err = m.product(n)
		if ok && err == nil && len(bias) != a.out {
			err = fmt.Errorf("%q: %d biases for %d outputs", name, len(bias), a.out)
		}
		a.bias = bias
		return a, ok, err
	case "Gemm":
		return m.gemm(n)
	}
	a, ok, err = m.product(n)
	if ok && err == nil && a.bias == nil {
		a.bias = make([]float32, a.out)
	}
	return a, ok, err
}

// product recognises xW.
func (m *matcher) product(n *node) (applied, bool, error) {
	switch {
	case n.op == "MatMul" && len(n.inputs) == 2:
		return m.matMul(n)
	case n.op == "Mul" && len(n.inputs) == 2:
		for i := range 2 {
			if p := m.node(n.inputs[i]); p != nil && p.op == "MatMulInteger" {
				return m.matMulInteger(p, n.inputs[1-i])
			}
		}
	case n.op == "DynamicQuantizeMatMul" && len(n.inputs) >= 3:
		// com.microsoft: A, B, b_scale, b_zero_point, bias.
		zero := ""
		if len(n.inputs) > 3 {
			zero = n.inputs[3]
		}
		l, err := m.quantized(n.inputs[1], n.inputs[2], zero)
		if len(n.inputs) > 4 && n.inputs[4] != "" && err == nil {
			bias, ok := m.vector(n.inputs[4])
			if !ok || len(bias) != l.out {
				err = errors.New("the bias of DynamicQuantizeMatMul is not a constant of one number an output")
			}
			l.bias = bias
		}
		return applied{l, n.inputs[0]}, true, err
	}
	return applied{}, false, nil
}

// matMul recognises x times a constant, which may be stored transposed or
// 8-bit behind a DequantizeLinear.
func (m *matcher) matMul(n *node) (applied, bool, error) {
	source, transposed := n.inputs[1], false
	if t := m.node(source); t != nil && t.op == "Transpose" {
		source, transposed = t.inputs[0], true
	}
	if d := m.node(source); d != nil && d.op == "DequantizeLinear" && len(d.inputs) > 1 {
		zero := ""
		if len(d.inputs) > 2 {
			zero = d.inputs[2]
		}
		l, err := m.quantized(d.inputs[0], d.inputs[1], zero)
		if transposed && err == nil {
			err = errors.New("transposed 8-bit weights are not supported")
		}
		return applied{l, n.inputs[0]}, true, err
	}
	w := m.constant(source)
	if w == nil {
		return applied{}, false, nil
	}
	l, err := dense(w, transposed)
	return applied{l, n.inputs[0]}, true, err
}

// gemm recognises Gemm(x, W, b) with alpha = beta = 1.
func (m *matcher) gemm(n *node) (applied, bool, error) {
	if len(n.inputs) != 3 {
		return applied{}, false, nil
	}
	w := m.constant(n.inputs[1])
	bias, ok := m.vector(n.inputs[2])
	if w == nil || !ok {
		return applied{}, false, nil
	}
	for _, f := range []string{"alpha", "beta"} {
		if v, ok := n.floats[f]; ok && v != 1 {
			return applied{}, true, fmt.Errorf("a Gemm with %s = %g is not supported", f, v)
		}
	}
	if n.ints["transA"] != 0 {
		return applied{}, true, errors.New("a Gemm with transA is not supported")
	}
	l, err := dense(w, n.ints["transB"] != 0)
	if err == nil && len(bias) != l.out {
		err = fmt.Errorf("%d biases for %d outputs", len(bias), l.out)
	}
	l.bias = bias
	return applied{l, n.inputs[0]}, true, err
}

// dense reads float weights.
func dense(w *tensor, transposed bool) (l linear, err error) {
	if len(w.dims) != 2 || w.dims[0] < 1 || w.dims[1] < 1 {
		return l, fmt.Errorf("tensor %q: dimensions %v, want two", w.name, w.dims)
	}
	l.in, l.out, l.transposed = w.dims[0], w.dims[1], transposed
	if transposed {
		l.in, l.out = l.out, l.in
	}
	l.floats, err = w.float32s()
	return l, err
}

// matMulInteger recognises Mul(Cast(MatMulInteger(quantised x, W)), x_scale *
// W_scale), the form ONNX Runtime's dynamic quantisation writes.
func (m *matcher) matMulInteger(n *node, scales string) (applied, bool, error) {
	if len(n.inputs) < 2 {
		return applied{}, false, nil
	}
	q, s := m.node(n.inputs[0]), m.node(scales)
	if q == nil || q.op != "DynamicQuantizeLinear" || s == nil || s.op != "Mul" || len(s.inputs) != 2 {
		return applied{}, false, nil
	}
	scale := s.inputs[0]
	if m.constant(scale) == nil {
		scale = s.inputs[1]
	}
	zero := ""
	if len(n.inputs) > 3 {
		zero = n.inputs[3]
	}
	l, err := m.quantized(n.inputs[1], scale, zero)
	return applied{l, q.inputs[0]}, true, err
}

// quantized reads 8-bit weights with their scales and zero points.
func (m *matcher) quantized(weights, scale, zero string) (l linear, err error) {
	w, s := m.constant(weights), m.constant(scale)
	if w == nil || s == nil {
		return l, errors.New("8-bit weights or their scale are not constants")
	}
	if len(w.dims) != 2 || w.dims[0] < 1 || w.dims[1] < 1 {
		return l, fmt.Errorf("tensor %q: dimensions %v, want two", w.name, w.dims)
	}
	l.in, l.out = w.dims[0], w.dims[1]
	if l.codes, l.signed, err = w.bytes(); err != nil {
		return l, err
	}
	if l.scales, err = s.float32s(); err != nil {
		return l, err
	}
	if l.zeros, err = m.zeros(zero); err != nil {
		return l, err
	}
	for _, n := range []int{len(l.scales), len(l.zeros)} {
		if n != 1 && n != l.out {
			return l, fmt.Errorf("tensor %q: %d scales or zero points for %d outputs", w.name, n, l.out)
		}
	}
	return l, nil
}

// zeros reads zero points; none is one zero.
func (m *matcher) zeros(name string) ([]int32, error) {
	if name == "" {
		return []int32{0}, nil
	}
	t := m.constant(name)
	if t == nil {
		return nil, errors.New("the zero point is not a constant")
	}
	b, signed, err := t.bytes()
	if err != nil {
		return nil, err
	}
	z := make([]int32, len(b))
	for i, c := range b {
		if z[i] = int32(c); signed {
			z[i] = int32(int8(c))
		}
	}
	return z, nil
}
