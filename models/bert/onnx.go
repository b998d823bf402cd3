package bert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// ONNX element types (onnx.proto, TensorProto.DataType) this engine reads.
const (
	typeFloat  = 1
	typeUint8  = 2
	typeInt8   = 3
	typeInt32  = 6
	typeInt64  = 7
	typeDouble = 11
)

// elementSizes are the sizes of elements in raw data, in bytes.
var elementSizes = map[int64]int{typeFloat: 4, typeUint8: 1, typeInt8: 1, typeInt32: 4, typeInt64: 8, typeDouble: 8}

// maxElements is the most elements of a tensor, so that hostile dimensions neither
// overflow an int nor cause a large allocation.
const maxElements = 1 << 31

// A tensor is a constant of the graph. raw holds its elements in little-endian order. It
// aliases the file if the file has them in this form.
type tensor struct {
	name     string
	typ      int64
	dims     []int64
	raw      []byte
	external int64 // 1 if the elements are in another file
}

// A node is an operation of the graph.
type node struct {
	op         string
	inputs     []string
	outputs    []string
	attributes map[string]*attribute
}

// An attribute is a parameter of a node, of the kinds that encoders use.
type attribute struct {
	float  float64
	int    int64
	text   string
	tensor *tensor
}

// A graph is an ONNX model's main graph. The producer of a tensor is the node
// that has the tensor's name among its outputs.
type graph struct {
	size      int // bytes of the file
	constants map[string]*tensor
	producer  map[string]*node
	outputs   []string
}

var errTruncated = errors.New("truncated or corrupt protobuf")

// decodeMessage decodes the protobuf message b into targets, by field number, and skips
// other fields. A target is one of
//
//	*string, *[]byte          the last value of the field; bytes alias b
//	*[]string                 every value
//	*int64                    the last varint
//	*[]int64                  every varint, packed or not
//	*float64                  the last float
//	func(field []byte) error  called with every value
//
// A *[]byte target also collects unpacked floats as if they were packed. decodeMessage
// skips a value whose wire type does not fit its target.
func decodeMessage(b []byte, targets map[protowire.Number]any) error {
	for len(b) > 0 {
		field, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errTruncated
		}
		b = b[n:]
		n = protowire.ConsumeFieldValue(field, typ, b)
		if n < 0 {
			return errTruncated
		}
		if target := targets[field]; target != nil {
			if err := store(target, typ, b[:n]); err != nil {
				return err
			}
		}
		b = b[n:]
	}
	return nil
}

// store sets target to a field's value, which must be well formed.
func store(target any, typ protowire.Type, value []byte) error {
	switch typ {
	case protowire.BytesType:
		content, _ := protowire.ConsumeBytes(value)
		switch to := target.(type) {
		case *string:
			*to = string(content)
		case *[]string:
			*to = append(*to, string(content))
		case *[]byte:
			*to = content[:len(content):len(content)]
		case *[]int64:
			for len(content) > 0 {
				v, n := protowire.ConsumeVarint(content)
				if n < 0 {
					return errTruncated
				}
				*to, content = append(*to, int64(v)), content[n:]
			}
		case func([]byte) error:
			return to(content)
		}
	case protowire.VarintType:
		v, _ := protowire.ConsumeVarint(value)
		switch to := target.(type) {
		case *int64:
			*to = int64(v)
		case *[]int64:
			*to = append(*to, int64(v))
		}
	case protowire.Fixed32Type:
		switch to := target.(type) {
		case *float64:
			*to = float64(math.Float32frombits(binary.LittleEndian.Uint32(value)))
		case *[]byte:
			*to = append(*to, value...)
		}
	}
	return nil
}

// parseONNX reads the main graph of a ModelProto. The weights alias file.
func parseONNX(file []byte) (*graph, error) {
	var body []byte
	if err := decodeMessage(file, map[protowire.Number]any{7: &body}); err != nil {
		return nil, err
	}
	if body == nil {
		return nil, errors.New("no graph in the file")
	}
	g := &graph{size: len(file), constants: map[string]*tensor{}, producer: map[string]*node{}}
	err := decodeMessage(body, map[protowire.Number]any{
		1: g.addNode,
		5: func(b []byte) error {
			t, err := parseTensor(b)
			if err == nil {
				g.constants[t.name] = t
			}
			return err
		},
		12: func(b []byte) error {
			var name string
			err := decodeMessage(b, map[protowire.Number]any{1: &name})
			g.outputs = append(g.outputs, name)
			return err
		},
	})
	delete(g.constants, "") // an absent input has no name
	return g, err
}

func (g *graph) addNode(b []byte) error {
	n := &node{attributes: map[string]*attribute{}}
	err := decodeMessage(b, map[protowire.Number]any{1: &n.inputs, 2: &n.outputs, 4: &n.op, 5: func(b []byte) error {
		var name string
		a := &attribute{}
		err := decodeMessage(b, map[protowire.Number]any{1: &name, 2: &a.float, 3: &a.int, 4: &a.text, 5: func(b []byte) (err error) {
			a.tensor, err = parseTensor(b)
			return err
		}})
		n.attributes[name] = a
		return err
	}})
	if err != nil {
		return err
	}
	if a := n.attributes["value"]; n.op == "Constant" && a != nil && a.tensor != nil && len(n.outputs) == 1 {
		g.constants[n.outputs[0]] = a.tensor
		return nil
	}
	if n.op == "CumSum" {
		return errors.New("positions are counted from the padding, as in RoBERTa, which is not supported")
	}
	for _, o := range n.outputs {
		if o != "" {
			g.producer[o] = n
		}
	}
	return nil
}

func parseTensor(b []byte) (*tensor, error) {
	t := &tensor{}
	var floats []byte
	var ints, longs []int64
	err := decodeMessage(b, map[protowire.Number]any{
		1: &t.dims, 2: &t.typ, 4: &floats, 5: &ints, 7: &longs, 8: &t.name, 9: &t.raw, 14: &t.external,
	})
	if err != nil {
		return nil, err
	}
	count := int64(1)
	for _, d := range t.dims {
		if d < 0 || d > maxElements || (d > 0 && count > maxElements/d) {
			return nil, fmt.Errorf("tensor %q: dimensions %v out of range", t.name, t.dims)
		}
		count *= d
	}
	if t.raw != nil {
		return t, nil
	}
	switch t.typ {
	case typeFloat:
		t.raw = floats
	case typeInt8, typeUint8:
		for _, v := range ints {
			t.raw = append(t.raw, byte(v))
		}
	case typeInt32:
		for _, v := range ints {
			t.raw = binary.LittleEndian.AppendUint32(t.raw, uint32(v))
		}
	case typeInt64:
		for _, v := range longs {
			t.raw = binary.LittleEndian.AppendUint64(t.raw, uint64(v))
		}
	}
	return t, nil
}

// len returns the number of elements that the dimensions give.
func (t *tensor) len() int {
	n := 1
	for _, d := range t.dims {
		n *= int(d)
	}
	return n
}

// check returns an error unless the tensor has all its elements and their type is one of
// types.
func (t *tensor) check(want string, types ...int64) error {
	if t.external == 1 {
		return fmt.Errorf("tensor %q: weights in an external file are not supported", t.name)
	}
	if !slices.Contains(types, t.typ) {
		return fmt.Errorf("tensor %q: element type %d, want %s", t.name, t.typ, want)
	}
	if size := t.len() * elementSizes[t.typ]; len(t.raw) != size {
		return fmt.Errorf("tensor %q: %d bytes, want %d for dimensions %v", t.name, len(t.raw), size, t.dims)
	}
	return nil
}

// float32s returns the elements of a floating-point tensor as a new slice.
func (t *tensor) float32s() ([]float32, error) {
	if err := t.check("float", typeFloat, typeDouble); err != nil {
		return nil, err
	}
	out := make([]float32, t.len())
	for i := range out {
		if t.typ == typeFloat {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.raw[4*i:]))
		} else {
			out[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(t.raw[8*i:])))
		}
	}
	return out, nil
}

// bytes returns the elements of an 8-bit tensor, which may alias the file, and
// whether they are signed.
func (t *tensor) bytes() (b []byte, signed bool, err error) {
	err = t.check("8-bit integers", typeInt8, typeUint8)
	return t.raw, t.typ == typeInt8, err
}

// integers returns the elements of an int32 or int64 tensor of at most 64
// elements: a shape or a number.
func (t *tensor) integers() ([]int64, bool) {
	if t.len() > 64 || t.check("integers", typeInt32, typeInt64) != nil {
		return nil, false
	}
	out := make([]int64, t.len())
	for i := range out {
		if t.typ == typeInt64 {
			out[i] = int64(binary.LittleEndian.Uint64(t.raw[8*i:]))
		} else {
			out[i] = int64(int32(binary.LittleEndian.Uint32(t.raw[4*i:])))
		}
	}
	return out, true
}

// scalar returns the one element of a numeric tensor.
func (t *tensor) scalar() (float64, bool) {
	if t.len() != 1 {
		return 0, false
	}
	if v, ok := t.integers(); ok {
		return float64(v[0]), true
	}
	if v, err := t.float32s(); err == nil {
		return float64(v[0]), true
	}
	return 0, false
}
