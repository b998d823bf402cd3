package bert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

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

// maxElements bounds a tensor's element count, so that hostile dimensions
// neither overflow an int nor ask for memory the file cannot fill.
const maxElements = 1 << 31

// A tensor is one constant of the graph. Its raw bytes alias the file.
type tensor struct {
	name     string
	typ      int32
	dims     []int
	raw      []byte
	floats   []byte // packed float_data
	ints     []byte // packed int32_data
	longs    []byte // packed int64_data
	external bool
}

// A node is one operation of the graph. Only the attributes an encoder uses
// are kept: integers, floats, strings and the tensor of a Constant.
type node struct {
	op      string
	inputs  []string
	outputs []string
	ints    map[string]int64
	floats  map[string]float64
	strings map[string]string
	lists   map[string][]int64
	value   *tensor
}

// A graph is an ONNX model's main graph, indexed the way the matcher walks
// it: from a tensor's name to what produces it.
type graph struct {
	size      int // bytes of the file
	constants map[string]*tensor
	producer  map[string]*node
	outputs   []string
	inputs    []string
}

var errTruncated = errors.New("truncated or corrupt protobuf")

// fields calls f with every field of a protobuf message. For bytes fields val
// is the content, for the others num is the number.
func fields(b []byte, f func(field protowire.Number, typ protowire.Type, val []byte, num uint64) error) error {
	for len(b) > 0 {
		field, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errTruncated
		}
		b = b[n:]
		var val []byte
		var num uint64
		switch typ {
		case protowire.BytesType:
			val, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			num, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			num = uint64(v)
		case protowire.Fixed64Type:
			num, n = protowire.ConsumeFixed64(b)
		default:
			n = protowire.ConsumeFieldValue(field, typ, b)
		}
		if n < 0 {
			return errTruncated
		}
		b = b[n:]
		if err := f(field, typ, val, num); err != nil {
			return err
		}
	}
	return nil
}

// parseONNX reads the main graph of a ModelProto. The weights alias file.
func parseONNX(file []byte) (*graph, error) {
	var body []byte
	err := fields(file, func(field protowire.Number, typ protowire.Type, val []byte, _ uint64) error {
		if field == 7 && typ == protowire.BytesType {
			body = val
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if body == nil {
		return nil, errors.New("no graph in the file")
	}
	g := &graph{size: len(file), constants: map[string]*tensor{}, producer: map[string]*node{}}
	err = fields(body, func(field protowire.Number, typ protowire.Type, val []byte, _ uint64) error {
		if typ != protowire.BytesType {
			return nil
		}
		switch field {
		case 1:
			n, err := parseNode(val)
			if err != nil {
				return err
			}
			if n.op == "Constant" && n.value != nil && len(n.outputs) == 1 {
				g.constants[n.outputs[0]] = n.value
				return nil
			}
			for _, o := range n.outputs {
				if o != "" {
					g.producer[o] = n
				}
			}
		case 5:
			t, err := parseTensor(val)
			if err != nil {
				return err
			}
			g.constants[t.name] = t
		case 11:
			g.inputs = append(g.inputs, valueName(val))
		case 12:
			g.outputs = append(g.outputs, valueName(val))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// valueName reads the name of a ValueInfoProto, "" when it has none.
func valueName(b []byte) (name string) {
	// An error leaves the name as read so far; an unknown name matches nothing.
	_ = fields(b, func(field protowire.Number, typ protowire.Type, val []byte, _ uint64) error {
		if field == 1 && typ == protowire.BytesType {
			name = string(val)
		}
		return nil
	})
	return name
}

func parseNode(b []byte) (*node, error) {
	n := &node{}
	err := fields(b, func(field protowire.Number, typ protowire.Type, val []byte, _ uint64) error {
		if typ != protowire.BytesType {
			return nil
		}
		switch field {
		case 1:
			n.inputs = append(n.inputs, string(val))
		case 2:
			n.outputs = append(n.outputs, string(val))
		case 4:
			n.op = string(val)
		case 5:
			return n.parseAttribute(val)
		}
		return nil
	})
	return n, err
}

func (n *node) parseAttribute(b []byte) error {
	var name string
	var num uint64
	var hasInt, hasFloat bool
	var str []byte
	var list []int64
	var value *tensor
	err := fields(b, func(field protowire.Number, typ protowire.Type, val []byte, v uint64) error {
		switch {
		case field == 1 && typ == protowire.BytesType:
			name = string(val)
		case field == 2 && typ == protowire.Fixed32Type:
			num, hasFloat = v, true
		case field == 3 && typ == protowire.VarintType:
			num, hasInt = v, true
		case field == 4 && typ == protowire.BytesType:
			str = val
		case field == 5 && typ == protowire.BytesType:
			t, err := parseTensor(val)
			if err != nil {
				return err
			}
			value = t
		case field == 8 && typ == protowire.VarintType:
			list = append(list, int64(v))
		case field == 8 && typ == protowire.BytesType:
			for len(val) > 0 {
				v, k := protowire.ConsumeVarint(val)
				if k < 0 {
					return errTruncated
				}
				list = append(list, int64(v))
				val = val[k:]
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch {
	case value != nil && name == "value":
		n.value = value
	case list != nil:
		if n.lists == nil {
			n.lists = map[string][]int64{}
		}
		n.lists[name] = list
	case hasFloat:
		if n.floats == nil {
			n.floats = map[string]float64{}
		}
		n.floats[name] = float64(math.Float32frombits(uint32(num)))
	case hasInt:
		if n.ints == nil {
			n.ints = map[string]int64{}
		}
		n.ints[name] = int64(num)
	case str != nil:
		if n.strings == nil {
			n.strings = map[string]string{}
		}
		n.strings[name] = string(str)
	}
	return nil
}

func parseTensor(b []byte) (*tensor, error) {
	t := &tensor{}
	err := fields(b, func(field protowire.Number, typ protowire.Type, val []byte, num uint64) error {
		switch {
		case field == 1 && typ == protowire.VarintType:
			t.dims = append(t.dims, int(num))
		case field == 1 && typ == protowire.BytesType:
			for len(val) > 0 {
				v, k := protowire.ConsumeVarint(val)
				if k < 0 {
					return errTruncated
				}
				t.dims = append(t.dims, int(v))
				val = val[k:]
			}
		case field == 2 && typ == protowire.VarintType:
			t.typ = int32(num)
		case field == 4 && typ == protowire.BytesType:
			t.floats = val[:len(val):len(val)]
		case field == 4 && typ == protowire.Fixed32Type:
			t.floats = binary.LittleEndian.AppendUint32(t.floats, uint32(num))
		case field == 5 && typ == protowire.BytesType:
			t.ints = val[:len(val):len(val)]
		case field == 5 && typ == protowire.VarintType:
			t.ints = protowire.AppendVarint(t.ints, num)
		case field == 7 && typ == protowire.BytesType:
			t.longs = val[:len(val):len(val)]
		case field == 7 && typ == protowire.VarintType:
			t.longs = protowire.AppendVarint(t.longs, num)
		case field == 8 && typ == protowire.BytesType:
			t.name = string(val)
		case field == 9 && typ == protowire.BytesType:
			t.raw = val
		case field == 14 && num == 1:
			t.external = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	count := 1
	for _, d := range t.dims {
		if d < 0 || d > maxElements || (d > 0 && count > maxElements/d) {
			return nil, fmt.Errorf("tensor %q: dimensions %v out of range", t.name, t.dims)
		}
		count *= d
	}
	return t, nil
}

// len returns the number of elements the dimensions promise.
func (t *tensor) len() int {
	n := 1
	for _, d := range t.dims {
		n *= d
	}
	return n
}

// float32s returns the elements of a floating-point tensor as a new slice.
func (t *tensor) float32s() ([]float32, error) {
	switch t.typ {
	case typeFloat:
		b := t.raw
		if b == nil {
			b = t.floats
		}
		if t.external || len(b) != 4*t.len() {
			return nil, t.sizeError(len(b), 4)
		}
		out := make([]float32, t.len())
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		return out, nil
	case typeDouble:
		if t.external || t.raw == nil || len(t.raw) != 8*t.len() {
			return nil, t.sizeError(len(t.raw), 8)
		}
		out := make([]float32, t.len())
		for i := range out {
			out[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(t.raw[8*i:])))
		}
		return out, nil
	}
	return nil, fmt.Errorf("tensor %q: element type %d, want float", t.name, t.typ)
}

func (t *tensor) sizeError(have, width int) error {
	if t.external {
		return fmt.Errorf("tensor %q: weights in an external file are not supported", t.name)
	}
	return fmt.Errorf("tensor %q: %d bytes, want %d for dimensions %v", t.name, have, t.len()*width, t.dims)
}

// bytes returns the elements of an 8-bit tensor; it may alias the file. What
// is signed says the type.
func (t *tensor) bytes() (b []byte, signed bool, err error) {
	if t.typ != typeInt8 && t.typ != typeUint8 {
		return nil, false, fmt.Errorf("tensor %q: element type %d, want 8-bit integers", t.name, t.typ)
	}
	signed = t.typ == typeInt8
	if t.raw != nil || t.external || t.ints == nil {
		if t.external || len(t.raw) != t.len() {
			return nil, signed, t.sizeError(len(t.raw), 1)
		}
		return t.raw, signed, nil
	}
	out := make([]byte, 0, min(t.len(), len(t.ints)))
	for rest := t.ints; len(rest) > 0; {
		v, n := protowire.ConsumeVarint(rest)
		if n < 0 {
			return nil, signed, errTruncated
		}
		out = append(out, byte(v))
		rest = rest[n:]
	}
	if len(out) != t.len() {
		return nil, signed, t.sizeError(len(out), 1)
	}
	return out, signed, nil
}

// integers returns the elements of an int32 or int64 tensor, of at most 64
// elements: the engine only reads shapes and scalars this way.
func (t *tensor) integers() ([]int64, bool) {
	if t.external || t.len() > 64 {
		return nil, false
	}
	var out []int64
	switch {
	case t.typ == typeInt64 && t.raw != nil && len(t.raw) == 8*t.len():
		for i := 0; i < len(t.raw); i += 8 {
			out = append(out, int64(binary.LittleEndian.Uint64(t.raw[i:])))
		}
	case t.typ == typeInt32 && t.raw != nil && len(t.raw) == 4*t.len():
		for i := 0; i < len(t.raw); i += 4 {
			out = append(out, int64(int32(binary.LittleEndian.Uint32(t.raw[i:]))))
		}
	case (t.typ == typeInt64 || t.typ == typeInt32) && t.raw == nil:
		rest := t.longs
		if t.typ == typeInt32 {
			rest = t.ints
		}
		for len(rest) > 0 && len(out) < 64 {
			v, n := protowire.ConsumeVarint(rest)
			if n < 0 {
				return nil, false
			}
			out = append(out, int64(v))
			rest = rest[n:]
		}
	}
	return out, len(out) == t.len()
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
