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

var errNotLinear = errors.New("not a product with constant weights")

// linear returns the linear layer that computes name, or errNotLinear if there is none.
func (m *matcher) linear(name string) (a applied, err error) {
	c := m.match(name, linearForms...)
	if c == nil {
		return a, errNotLinear
	}
	for _, factor := range []string{"alpha", "beta"} { // of a Gemm
		if f := m.attribute(name, factor); f != nil && f.float != 1 {
			return a, fmt.Errorf("a Gemm with %s = %g is not supported", factor, f.float)
		}
	}
	if f := m.attribute(name, "transA"); f != nil && f.int != 0 {
		return a, errors.New("a Gemm with transA is not supported")
	}
	if f := m.attribute(name, "transB"); f != nil && f.int != 0 {
		c["transposed"] = c["w"]
	}
	a.input = c["x"]
	if a.linear, err = m.weights(c); err != nil {
		return a, err
	}
	if err = m.inputScale(&a); err != nil {
		return a, err
	}
	if c["bias"] == "" {
		a.bias = make([]float32, a.out)
		return a, nil
	}
	a.bias, err = m.vector(c["bias"])
	if err == nil && len(a.bias) != a.out {
		err = fmt.Errorf("%q: %d biases for %d outputs", name, len(a.bias), a.out)
	}
	return a, err
}

// inputForm is an input whose entries are shifted and scaled before they are
// rounded to bytes, so that a few large ones do not coarsen the rest (Xiao et al.
// 2023, SmoothQuant).
var inputForm = op("Mul", op("Add", in("x"), weight("shift")), weight("factor"))

// inputScale reads the shift and factor of a's input if it has them, and sets
// the input to the tensor before them.
func (m *matcher) inputScale(a *applied) (err error) {
	c := m.match(a.input, inputForm)
	if c == nil {
		return nil
	}
	if a.shift, err = m.vector(c["shift"]); err != nil {
		return err
	}
	if a.factor, err = m.vector(c["factor"]); err != nil {
		return err
	}
	if len(a.shift) != a.in || len(a.factor) != a.in {
		return fmt.Errorf("%d shifts and %d factors for %d inputs", len(a.shift), len(a.factor), a.in)
	}
	if a.codes == nil {
		return errors.New("shifted inputs of float weights are not supported")
	}
	a.input = c["x"]
	return nil
}

// weights reads the float or 8-bit weights that linearForms captured.
func (m *matcher) weights(c captures) (l linear, err error) {
	l.transposed = c["transposed"] != ""
	w := m.constants[c["w"]+c["codes"]] // one of them is empty
	if l.transposed {
		w = m.constants[c["transposed"]]
	}
	if len(w.dims) != 2 || w.dims[0] < 1 || w.dims[1] < 1 {
		return l, fmt.Errorf("tensor %q: dimensions %v, want two", w.name, w.dims)
	}
	l.in, l.out = int(w.dims[0]), int(w.dims[1])
	if l.transposed {
		l.in, l.out = l.out, l.in
	}
	if c["codes"] == "" {
		l.floats, err = w.float32s()
		return l, err
	}
	if l.codes, l.signed, err = w.bytes(); err != nil {
		return l, err
	}
	l.scales, l.zeros, err = m.scales(c, l.out)
	return l, err
}

// scales reads the scales and zero points of 8-bit weights: one of each, or one for each
// output. Missing zero points are 0.
func (m *matcher) scales(c captures, outputs int) (scales []float32, zeros []int32, err error) {
	if scales, err = m.constants[c["scale"]].float32s(); err != nil {
		return nil, nil, err
	}
	zeros = []int32{0}
	if t := m.constants[c["zero"]]; t != nil {
		b, signed, err := t.bytes()
		if err != nil {
			return nil, nil, err
		}
		zeros = make([]int32, len(b))
		for i, v := range b {
			if zeros[i] = int32(v); signed {
				zeros[i] = int32(int8(v))
			}
		}
	}
	for _, n := range []int{len(scales), len(zeros)} {
		if n != 1 && n != outputs {
			return nil, nil, fmt.Errorf("%d scales or zero points for %d outputs", n, outputs)
		}
	}
	return scales, zeros, nil
}
