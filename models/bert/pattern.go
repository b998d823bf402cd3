package bert

import (
	"maps"
	"math"
	"slices"
)

// A pattern describes how a tensor is computed: by an operation on tensors that match
// patterns, or in any way.
type pattern struct {
	op       string    // the operation, "" for a tensor that is not examined further
	inputs   []pattern // of op
	name     string    // captures the tensor under this name
	constant bool      // the tensor is a constant
	optional bool      // the input may be absent
	value    float64   // the tensor is this number, if not 0
}

// The functions below build patterns: op for an operation, in for any tensor
// and weight for a constant, both captured under a name, number for a constant
// number, and optional for an input that an operation may lack. Two tensors
// captured under the same name must be the same tensor.
func op(op string, inputs ...pattern) pattern { return pattern{op: op, inputs: inputs} }
func in(name string) pattern                  { return pattern{name: name} }
func weight(name string) pattern              { return pattern{name: name, constant: true} }
func number(v float64) pattern                { return pattern{constant: true, value: v} }
func optional(p pattern) pattern              { p.optional = true; return p }

// anything matches every tensor.
var anything = pattern{}

// captures are the names of the tensors that a pattern captured.
type captures map[string]string

// A matcher compares patterns with a graph. steps bounds the work: a hostile
// graph may have cycles.
type matcher struct {
	*graph
	steps int
}

// origin follows operations that do not change values back to a tensor, and returns its
// name.
func (m *matcher) origin(name string) string {
	for m.steps > 0 {
		m.steps--
		n := m.producer[name]
		if n == nil || len(n.inputs) == 0 || !slices.Contains([]string{"Identity", "Cast", "Dropout"}, n.op) {
			break
		}
		name = n.inputs[0]
	}
	return name
}

// node returns the node that computes origin(name), or nil for a constant or an input, or
// if no steps are left.
func (m *matcher) node(name string) *node {
	n := m.producer[m.origin(name)]
	if m.steps <= 0 {
		return nil
	}
	return n
}

// attribute returns an attribute of the node that computes name, or nil.
func (m *matcher) attribute(name, attribute string) *attribute {
	if n := m.node(name); n != nil {
		return n.attributes[attribute]
	}
	return nil
}

// match returns the captures of the first pattern that tensor name matches, or nil.
// The inputs of additions and products match in either order.
func (m *matcher) match(name string, patterns ...pattern) captures {
	for _, p := range patterns {
		if c := m.matchOne(p, name, captures{}); c != nil {
			return c
		}
	}
	return nil
}

func (m *matcher) matchOne(p pattern, name string, c captures) captures {
	if p.op == "" {
		return m.matchTensor(p, m.origin(name), c)
	}
	n := m.node(name)
	if n == nil || n.op != p.op {
		return nil
	}
	found := m.matchInputs(p.inputs, n.inputs, c)
	if found == nil && (n.op == "Add" || n.op == "Mul") && len(n.inputs) == 2 {
		found = m.matchInputs(p.inputs, []string{n.inputs[1], n.inputs[0]}, c)
	}
	return found
}

func (m *matcher) matchInputs(patterns []pattern, inputs []string, c captures) captures {
	if len(inputs) > len(patterns) {
		return nil
	}
	c = maps.Clone(c)
	for i, p := range patterns {
		if i >= len(inputs) || inputs[i] == "" {
			if !p.optional {
				return nil
			}
		} else if c = m.matchOne(p, inputs[i], c); c == nil {
			return nil
		}
	}
	return c
}

func (m *matcher) matchTensor(p pattern, name string, c captures) captures {
	t := m.constants[name]
	if p.constant && t == nil {
		return nil
	}
	if p.value != 0 {
		// Exporters round: some write 1.4142 for the square root of 2.
		if v, ok := t.scalar(); !ok || math.Abs(v-p.value) > 1e-3 {
			return nil
		}
	}
	if p.name == "" {
		return c
	}
	if earlier, ok := c[p.name]; ok && earlier != name {
		return nil
	}
	c[p.name] = name
	return c
}
