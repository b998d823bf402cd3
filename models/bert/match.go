package bert

import (
	"errors"
	"fmt"
	"math"
)

// The patterns below are the forms in which exporters and quantisers write the parts of an
// encoder.

// normForms are a layer normalisation of x, fused or as exported by PyTorch. From opset 18
// on, the axes of ReduceMean are an input.
var normForms = []pattern{
	op("LayerNormalization", in("x"), weight("weight"), weight("bias")),
	op("Add", weight("bias"), op("Mul", weight("weight"), op("Div",
		op("Sub", in("x"), op("ReduceMean", in("x"), optional(anything))),
		op("Sqrt", op("Add", op("ReduceMean", anything, optional(anything)), weight("epsilon")))))),
}

// productForms are xW. The fourth form is written by ONNX Runtime's dynamic quantisation.
var productForms = []pattern{
	op("MatMul", in("x"), weight("w")),
	op("MatMul", in("x"), op("Transpose", weight("transposed"))),
	op("MatMul", in("x"), op("DequantizeLinear", weight("codes"), weight("scale"), optional(weight("zero")))),
	op("Mul", op("MatMulInteger", op("DynamicQuantizeLinear", in("x")), weight("codes"), optional(anything), optional(weight("zero"))),
		op("Mul", anything, weight("scale"))),
	op("DynamicQuantizeMatMul", in("x"), weight("codes"), weight("scale"), optional(weight("zero"))),
}

// linearForms are xW + b and xW.
var linearForms = append(added(weight("bias"), productForms), append(productForms,
	op("Gemm", in("x"), weight("w"), weight("bias")),
	op("DynamicQuantizeMatMul", in("x"), weight("codes"), weight("scale"), optional(weight("zero")), weight("bias")))...)

// geluForms are x * (1 + erf(x/sqrt 2)) * 1/2, by Hendrycks and Gimpel 2016.
var geluForms = func() (forms []pattern) {
	for _, root := range []pattern{op("Div", in("x"), number(math.Sqrt2)), op("Mul", in("x"), number(1/math.Sqrt2))} {
		erf := op("Add", op("Erf", root), number(1))
		forms = append(forms,
			op("Mul", op("Mul", erf, in("x")), number(0.5)),
			op("Mul", op("Mul", number(0.5), in("x")), erf),
			op("Mul", op("Mul", number(0.5), erf), in("x")))
	}
	return append(forms, op("Gelu", in("x")))
}()

// scoreForms are the attention scores q times k, scaled or not, under the mask
// or not.
var scoreForms = func() (forms []pattern) {
	qk := op("MatMul", in("query"), in("key"))
	for _, s := range append([]pattern{qk}, scaled(qk)...) {
		forms = append(forms, s, op("Add", s, anything), op("Where", anything, s, anything), op("Where", anything, anything, s))
	}
	return forms
}()

// contextForm is the weighted sum of the values, its heads joined.
var contextForm = op("Reshape", op("Transpose", op("MatMul", op("Softmax", in("scores")), in("value"))), anything)

// splitForms are the steps between the weights and the scores or values.
var splitForms = append(scaled(in("x")), op("Transpose", in("x")), op("Reshape", in("x"), in("shape")))

// lookupForms are rows of an embedding, dequantised before, after or not at all.
// In the last form each row has a scale of its own.
var lookupForms = []pattern{
	op("Gather", weight("table"), in("rows")),
	op("Gather", op("DequantizeLinear", weight("table"), weight("scale"), optional(weight("zero"))), in("rows")),
	op("DequantizeLinear", op("Gather", weight("table"), in("rows")), weight("scale"), optional(weight("zero"))),
	op("Mul", op("Gather", weight("table"), in("rows")), op("Gather", weight("scales"), in("rows"))),
}

func added(term pattern, forms []pattern) (sums []pattern) {
	for _, p := range forms {
		sums = append(sums, op("Add", term, p))
	}
	return sums
}

// scaled returns the forms of p scaled: "times" or "over" is the factor.
func scaled(p pattern) []pattern {
	return []pattern{op("Mul", p, weight("times")), op("Div", p, weight("over")), op("Mul", p, in("times")), op("Div", p, in("over"))}
}

// norm returns the layer normalisation that computes name, and its input.
func (m *matcher) norm(name string) (n norm, input string, err error) {
	c := m.match(name, normForms...)
	if c == nil {
		return n, "", fmt.Errorf("%q: not the end of a layer normalisation", name)
	}
	n.epsilon = 1e-5 // the operator's default
	if t := m.constants[c["epsilon"]]; t != nil {
		var ok bool
		if n.epsilon, ok = t.scalar(); !ok {
			return n, "", fmt.Errorf("%q: the epsilon is not one number", name)
		}
	} else if a := m.attribute(name, "epsilon"); a != nil {
		n.epsilon = a.float
	}
	if n.weight, err = m.vector(c["weight"]); err != nil {
		return n, "", err
	}
	n.bias, err = m.vector(c["bias"])
	return n, c["x"], err
}

// vector returns the constant name, which must have one dimension.
func (m *matcher) vector(name string) ([]float32, error) {
	t := m.constants[name]
	if len(t.dims) != 1 || t.dims[0] < 1 {
		return nil, fmt.Errorf("tensor %q: dimensions %v, want one", name, t.dims)
	}
	return t.float32s()
}

// layer returns the transformer block whose sum before the last normalisation
// is name, and the tensor the block starts from. It sets n's heads and scale.
// The error is errNoLayer if no linear layer is added to another tensor.
func (m *matcher) layer(name string, n *network) (l layer, input string, err error) {
	down, residual, err := m.residual(name)
	if err != nil {
		return l, "", err
	}
	activated, err := m.gelu(down.input)
	if err != nil {
		return l, "", err
	}
	up, err := m.linear(activated)
	if err != nil {
		return l, "", fmt.Errorf("intermediate weights: %w", err)
	}
	if up.input != residual {
		return l, "", errors.New("the feed-forward input is not its residual (pre-norm encoders are not supported)")
	}
	norm, sum, err := m.norm(residual)
	if err != nil {
		return l, "", fmt.Errorf("attention: %w", err)
	}
	out, input, err := m.residual(sum)
	if err != nil {
		return l, "", fmt.Errorf("attention output: %w", err)
	}
	l.down, l.up, l.attentionNorm, l.output = down.linear, up.linear, norm, out.linear
	if err := m.attention(out.input, input, &l, n); err != nil {
		return l, "", fmt.Errorf("attention: %w", err)
	}
	return l, input, nil
}

// errNoLayer ends the walk back through the layers.
var errNoLayer = errors.New("not the end of a transformer layer")

// residual returns the linear layer and the other tensor whose sum is name.
func (m *matcher) residual(name string) (a applied, residual string, err error) {
	if c := m.match(name, op("Add", in("a"), in("b"))); c != nil {
		if a, err = m.linear(c["a"]); err != errNotLinear {
			return a, c["b"], err
		}
		if a, err = m.linear(c["b"]); err != errNotLinear {
			return a, c["a"], err
		}
	}
	return a, "", errNoLayer
}

// gelu returns the x of the activation gelu(x) that computes name.
func (m *matcher) gelu(name string) (string, error) {
	c := m.match(name, geluForms...)
	if c == nil {
		return "", fmt.Errorf("%q: the activation is not gelu by erf", name)
	}
	if a := m.attribute(name, "approximate"); a != nil && a.text != "none" {
		return "", fmt.Errorf("activation: gelu by %s is not supported, want gelu by erf", a.text)
	}
	return c["x"], nil
}

// attention reads softmax(QK^T * scale + mask) V from name, with Q, K and V
// computed from the tensor input.
func (m *matcher) attention(name, input string, l *layer, n *network) error {
	context := m.match(name, contextForm)
	if context == nil {
		return errors.New("no product of probabilities and values")
	}
	scores := m.match(context["scores"], scoreForms...)
	if scores == nil {
		return errors.New("the scores are not a product of queries and keys, scaled and masked")
	}
	scale, known := m.factor(scores)
	for _, p := range []struct {
		name, at string
		to       *linear
	}{{"query", scores["query"], &l.query}, {"key", scores["key"], &l.key}, {"value", context["value"], &l.value}} {
		a, s, ok, err := m.projection(p.at, n)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if a.input != input {
			return fmt.Errorf("%s: computed from %q, want %q", p.name, a.input, input)
		}
		*p.to = a.linear
		scale *= s
		known = known && ok
	}
	if !known {
		return nil // computed from shapes: the standard 1/sqrt(head size)
	}
	if !(scale > 0) || math.IsInf(scale, 0) || n.scale != 0 && n.scale != scale {
		return fmt.Errorf("scores scaled by %g, those of another layer by %g", scale, n.scale)
	}
	n.scale = scale
	return nil
}

// factor returns the factor in a match of scaled, or 1 if there is none. known is false if
// the factor is not a constant number.
func (m *matcher) factor(c captures) (v float64, known bool) {
	if name, ok := c["times"]; ok {
		return m.scalar(name)
	}
	if name, ok := c["over"]; ok {
		v, known = m.scalar(name)
		return 1 / v, known
	}
	return 1, true
}

func (m *matcher) scalar(name string) (float64, bool) {
	if t := m.constants[name]; t != nil {
		return t.scalar()
	}
	return 1, false
}

// projection returns the linear layer before the head split of a query, key or value, and
// its scale. It sets n's heads.
func (m *matcher) projection(name string, n *network) (a applied, scale float64, known bool, err error) {
	scale, known = 1, true
	for range 12 {
		c := m.match(name, splitForms...)
		if c == nil {
			a, err = m.linear(name)
			return a, scale, known, err
		}
		s, ok := m.factor(c)
		scale, known, name = scale*s, known && ok, c["x"]
		if h := m.heads(c["shape"]); h > 0 && n.heads != h {
			if n.heads != 0 {
				return a, 0, false, fmt.Errorf("%d heads, elsewhere %d", h, n.heads)
			}
			n.heads = h
		}
	}
	return a, 0, false, errors.New("no weights found")
}

// heads returns the number of heads in the shape [batch, tokens, heads, size] of a head
// split, which is a constant or a concatenation of constants, or 0 if it is something else.
func (m *matcher) heads(shape string) int {
	h := 0.0
	if t := m.constants[shape]; t != nil {
		if v, ok := t.integers(); ok && len(v) == 4 {
			h = float64(v[2])
		}
	} else if c := m.match(shape, op("Concat", anything, anything, weight("heads"), anything)); c != nil {
		h, _ = m.scalar(c["heads"])
	}
	if h > 0 && h < 1<<14 {
		return int(h)
	}
	return 0
}

// embeddings reads the tables whose looked-up rows add up to name.
func (m *matcher) embeddings(name string, n *network, depth int) error {
	c := m.match(name, op("Add", in("a"), in("b")))
	if c == nil || depth == 0 {
		return m.lookup(name, n)
	}
	if err := m.embeddings(c["a"], n, depth-1); err != nil {
		return err
	}
	return m.embeddings(c["b"], n, depth-1)
}

// lookup reads an embedding table.
func (m *matcher) lookup(name string, n *network) error {
	c := m.match(name, lookupForms...)
	if c == nil {
		return fmt.Errorf("embeddings: %q is not rows of a constant table", name)
	}
	w := m.constants[c["table"]]
	if len(w.dims) != 2 {
		return fmt.Errorf("embeddings: tensor %q: dimensions %v, want two", w.name, w.dims)
	}
	t := table{rows: int(w.dims[0]), width: int(w.dims[1])}
	var err error
	switch {
	case c["scales"] != "":
		if t.codes, t.signed, err = w.bytes(); err == nil {
			t.scales, err = m.constants[c["scales"]].float32s()
		}
		if err == nil && len(t.scales) != t.rows {
			err = fmt.Errorf("%d scales for %d rows", len(t.scales), t.rows)
		}
	case c["scale"] != "":
		var zeros []int32
		if t.codes, t.signed, err = w.bytes(); err == nil {
			t.scales, zeros, err = m.scales(c, 1)
		}
		if err == nil {
			t.zero = zeros[0]
		}
	default:
		t.floats, err = w.float32s()
	}
	if err != nil {
		return fmt.Errorf("embeddings: %w", err)
	}
	// The word table is looked up by input_ids; the type table, of two rows in
	// every BERT, by token_type_ids or a constant; positions by the rest.
	to := &n.positions
	switch {
	case c["rows"] == "input_ids":
		to = &n.words
	case c["rows"] == "token_type_ids" || t.rows <= 4:
		to = &n.types
	}
	if to.rows > 0 {
		return fmt.Errorf("embeddings: tensor %q: a fourth table, want words, positions and types", w.name)
	}
	*to = t
	return nil
}
