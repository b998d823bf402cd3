package bert

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"cairn/models/wordpiece"
)

// A tinySpec describes a BERT to generate and the form of its graph.
type tinySpec struct {
	words, positions, hidden, inner, heads, layers int
	// Forms exporters use; the zero value is what PyTorch writes.
	form string
}

var tinySpecs = map[string]tinySpec{
	"float":        {37, 40, 64, 96, 2, 2, ""},
	"fused":        {37, 40, 48, 80, 3, 2, "fused"},
	"odd":          {37, 40, 40, 50, 2, 1, ""},
	"wide heads":   {37, 40, 128, 160, 2, 1, ""},
	"8-bit":        {37, 40, 64, 96, 2, 2, "int8"},
	"8-bit odd":    {37, 40, 40, 50, 2, 1, "int8"},
	"8-bit wide":   {37, 40, 128, 160, 2, 1, "int8"},
	"8-bit fused":  {37, 40, 48, 80, 3, 2, "int8 fused"},
	"8-bit nodes":  {37, 40, 64, 96, 2, 1, "int8 qdq"},
	"unsigned":     {37, 40, 64, 96, 2, 1, "int8 unsigned"},
	"8-bit by DQM": {37, 40, 64, 96, 2, 1, "int8 dqm"},
	"8-bit smooth": {37, 40, 64, 96, 2, 2, "int8 smooth"},
	"scaled apart": {37, 40, 64, 96, 2, 2, "sdpa"},
}

// A tiny is a generated BERT: its parameters by name, in float64 and, where
// the graph rounds them, as rounded.
type tiny struct {
	tinySpec
	rng    *rand.Rand
	params map[string][]float64
	nodes  []byte
	serial int
}

func (y *tiny) has(form string) bool { return strings.Contains(y.form, form) }

// generate makes a model and its ONNX file. With a "pair" form it is a cross-encoder, whose
// output is a logit.
func (spec tinySpec) generate() (*tiny, []byte) {
	y := &tiny{tinySpec: spec, rng: rand.New(rand.NewPCG(1, 2)), params: map[string][]float64{}}
	h := y.embedding()
	for l := range y.layers {
		h = y.block(l, h)
	}
	if y.has("pair") {
		axis := appendInt(appendBytes(nil, 1, []byte("axis")), 3, 1)
		first := y.nodeWith("Gather", axis, h, y.tensor(typeInt64, make([]byte, 8)))
		h = y.linear("classifier", y.node("Tanh", y.linear("pooler", first, y.hidden, y.hidden)), y.hidden, 1)
	}
	graph := y.nodes
	for _, in := range []string{"input_ids", "attention_mask", "token_type_ids"} {
		graph = appendBytes(graph, 11, appendBytes(nil, 1, []byte(in)))
	}
	graph = appendBytes(graph, 12, appendBytes(nil, 1, []byte(h)))
	return y, appendBytes(nil, 7, graph)
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendInt(b []byte, field protowire.Number, v int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}

// node writes an operation and returns its output's name.
func (y *tiny) node(op string, inputs ...string) string {
	return y.nodeWith(op, nil, inputs...)
}

func (y *tiny) nodeWith(op string, attribute []byte, inputs ...string) string {
	y.serial++
	out := fmt.Sprintf("t%d", y.serial)
	var n []byte
	for _, in := range inputs {
		n = appendBytes(n, 1, []byte(in))
	}
	n = appendBytes(n, 2, []byte(out))
	n = appendBytes(n, 4, []byte(op))
	if attribute != nil {
		n = appendBytes(n, 5, attribute)
	}
	y.nodes = appendBytes(y.nodes, 1, n)
	return out
}

// tensor writes an initialiser: raw little-endian content.
func (y *tiny) tensor(typ int, raw []byte, dims ...int) string {
	y.serial++
	name := fmt.Sprintf("w%d", y.serial)
	var t []byte
	for _, d := range dims {
		t = appendInt(t, 1, d)
	}
	t = appendInt(t, 2, typ)
	t = appendBytes(t, 8, []byte(name))
	t = appendBytes(t, 9, raw)
	y.nodes = appendBytes(y.nodes, 5, t)
	return name
}

func (y *tiny) floatTensor(v []float64, dims ...int) string {
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(x)))
	}
	return y.tensor(typeFloat, raw, dims...)
}

func (y *tiny) scalar(v float64) string { return y.floatTensor([]float64{v}) }

func (y *tiny) shape(v ...int64) string {
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(x))
	}
	return y.tensor(typeInt64, raw, len(v))
}

// random draws and remembers a parameter.
func (y *tiny) random(name string, n int, mean, deviation float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(float32(mean + deviation*y.rng.NormFloat64()))
	}
	y.params[name] = v
	return v
}

func (y *tiny) embedding() string {
	table := func(name string, rows int, index string) string {
		v := y.random(name, rows*y.hidden, 0, 0.5)
		if !y.has("int8") {
			return y.node("Gather", y.floatTensor(v, rows, y.hidden), index)
		}
		raw := make([]byte, len(v))
		if y.has("smooth") { // a scale for each row
			scales := make([]float64, rows)
			for i, x := range v {
				if i%y.hidden == 0 {
					scales[i/y.hidden] = 1.0 / 64 / float64(1+i/y.hidden%3)
				}
				s := scales[i/y.hidden]
				c := max(-127, min(127, math.Round(x/s)))
				raw[i], v[i] = byte(int8(c)), c*s
			}
			return y.node("Mul", y.node("Cast", y.node("Gather", y.tensor(typeInt8, raw, rows, y.hidden), index)), y.node("Gather", y.floatTensor(scales, rows, 1), index))
		}
		const scale, zero = 1.0 / 64, 128
		for i, x := range v {
			c := max(0, min(255, math.Round(x/scale)+zero))
			raw[i], v[i] = byte(c), (c-zero)*scale
		}
		got := y.node("Gather", y.tensor(typeUint8, raw, rows, y.hidden), index)
		return y.node("DequantizeLinear", got, y.scalar(scale), y.tensor(typeUint8, []byte{zero}))
	}
	words := table("words", y.words, "input_ids")
	types := table("types", 2, "token_type_ids")
	positions := table("positions", y.positions, y.node("Slice", y.shape(0, 1, 2)))
	return y.norm("embed", y.node("Add", y.node("Add", words, types), positions))
}

func (y *tiny) norm(name, x string) string {
	weight := y.floatTensor(y.random(name+".weight", y.hidden, 1, 0.2), y.hidden)
	bias := y.floatTensor(y.random(name+".bias", y.hidden, 0, 0.2), y.hidden)
	if y.has("fused") {
		attribute := appendBytes(nil, 1, []byte("epsilon"))
		attribute = protowire.AppendFixed32(protowire.AppendTag(attribute, 2, protowire.Fixed32Type), math.Float32bits(1e-12))
		return y.nodeWith("LayerNormalization", attribute, x, weight, bias)
	}
	d := y.node("Sub", x, y.node("ReduceMean", x))
	variance := y.node("ReduceMean", y.node("Pow", d, y.scalar(2)))
	unit := y.node("Div", d, y.node("Sqrt", y.node("Add", variance, y.scalar(1e-12))))
	return y.node("Add", y.node("Mul", unit, weight), bias)
}

// linear writes xW + b in the form the spec asks for.
func (y *tiny) linear(name, x string, in, out int) string {
	w := y.random(name+".weight", in*out, 0, 1/math.Sqrt(float64(in)))
	bias := y.floatTensor(y.random(name+".bias", out, 0, 0.3), out)
	if !y.has("int8") {
		if y.has("fused") { // transposed, as PyTorch keeps it
			t := make([]float64, len(w))
			for i := range in {
				for j := range out {
					t[j*in+i] = w[i*out+j]
				}
			}
			attribute := appendInt(appendBytes(nil, 1, []byte("transB")), 3, 1)
			return y.nodeWith("Gemm", attribute, x, y.floatTensor(t, out, in), bias)
		}
		return y.node("Add", y.node("MatMul", x, y.floatTensor(w, in, out)), bias)
	}
	codes, scale, zero := y.quantize(w, in, out)
	if y.has("dqm") {
		return y.node("DynamicQuantizeMatMul", x, codes, scale, zero, bias)
	}
	if y.has("qdq") {
		return y.node("Add", y.node("MatMul", x, y.node("DequantizeLinear", codes, scale, zero)), bias)
	}
	q := y.node("DynamicQuantizeLinear", x)
	product := y.node("Cast", y.node("MatMulInteger", q, codes, "zero_of_"+q, zero))
	return y.node("Add", bias, y.node("Mul", product, y.node("Mul", "scale_of_"+q, scale)))
}

// smooth shifts and scales the entries of x if the spec asks for that.
func (y *tiny) smooth(name, x string) string {
	if !y.has("smooth") {
		return x
	}
	shift := y.floatTensor(y.random(name+".shift", y.hidden, 0, 1), y.hidden)
	return y.node("Mul", y.node("Add", x, shift), y.floatTensor(y.random(name+".factor", y.hidden, 1, 0.2), y.hidden))
}

// smoothed is what smooth computes.
func (y *tiny) smoothed(name string, x [][]float64) [][]float64 {
	shift, factor := y.params[name+".shift"], y.params[name+".factor"]
	if shift == nil {
		return x
	}
	out := make([][]float64, len(x))
	for i := range x {
		for j, v := range x[i] {
			out[i] = append(out[i], (v+shift[j])*factor[j])
		}
	}
	return out
}

// quantize rounds weights to 8 bits, a channel or, unsigned, the whole tensor
// at a time, and leaves the rounded values in w.
func (y *tiny) quantize(w []float64, in, out int) (codes, scale, zero string) {
	raw := make([]byte, len(w))
	if y.has("unsigned") {
		const s, z = 1.0 / 100, 100 // codes reach 155 from their zero point
		for i, x := range w {
			c := max(0, min(255, math.Round(x/s)+z))
			raw[i], w[i] = byte(c), (c-z)*s
		}
		return y.tensor(typeUint8, raw, in, out), y.scalar(s), y.tensor(typeUint8, []byte{z})
	}
	scales := make([]float64, out)
	for j := range out {
		top := 0.0
		for i := range in {
			top = max(top, math.Abs(w[i*out+j]))
		}
		scales[j] = float64(float32(top / 127))
		for i := range in {
			c := math.Round(w[i*out+j] / scales[j])
			raw[i*out+j], w[i*out+j] = byte(int8(c)), c*scales[j]
		}
	}
	return y.tensor(typeInt8, raw, in, out), y.floatTensor(scales, out), y.tensor(typeInt8, make([]byte, out), out)
}

func (y *tiny) block(l int, h string) string {
	name := func(s string) string { return fmt.Sprintf("%d.%s", l, s) }
	size := y.hidden / y.heads
	split := func(x string) string {
		return y.node("Transpose", y.node("Reshape", x, y.shape(0, 0, int64(y.heads), int64(size))))
	}
	x := y.smooth(name("attention in"), h)
	q := split(y.linear(name("query"), x, y.hidden, y.hidden))
	k := y.node("Transpose", split(y.linear(name("key"), x, y.hidden, y.hidden)))
	v := split(y.linear(name("value"), x, y.hidden, y.hidden))
	var masked string
	if y.has("sdpa") { // PyTorch's scaled_dot_product_attention scales both factors by a computed number
		root := y.node("Sqrt", "scale")
		masked = y.node("Where", "mask", y.node("MatMul", y.node("Mul", q, root), y.node("Mul", k, root)), "lowest")
	} else {
		scores := y.node("Div", y.node("MatMul", q, k), y.scalar(math.Sqrt(float64(size))))
		if y.has("relative") { // relative positions, as in MPNet
			scores = y.node("Add", scores, "relative")
		}
		masked = y.node("Add", scores, "mask")
	}
	p := y.node("Softmax", masked)
	context := y.node("Reshape", y.node("Transpose", y.node("MatMul", p, v)), y.shape(0, 0, int64(y.hidden)))
	a := y.norm(name("attention"), y.node("Add", y.linear(name("out"), context, y.hidden, y.hidden), h))
	up := y.linear(name("up"), y.smooth(name("up in"), a), y.hidden, y.inner)
	var act string
	if y.has("fused") {
		act = y.node("Gelu", up)
	} else {
		erf := y.node("Add", y.node("Erf", y.node("Div", up, y.scalar(math.Sqrt2))), y.scalar(1))
		act = y.node("Mul", y.node("Mul", up, erf), y.scalar(0.5))
	}
	return y.norm(name("output"), y.node("Add", y.linear(name("down"), act, y.inner, y.hidden), a))
}

// states is the slow, obvious float64 BERT the engine is compared with. Tokens from second
// on belong to the second text.
func (y *tiny) states(ids []int32, second int) [][]float64 {
	h := make([][]float64, len(ids))
	for t, id := range ids {
		h[t] = make([]float64, y.hidden)
		kind := 0
		if t >= second {
			kind = y.hidden
		}
		for j := range h[t] {
			h[t][j] = y.params["words"][int(id)*y.hidden+j] + y.params["types"][kind+j] + y.params["positions"][t*y.hidden+j]
		}
	}
	h = y.normalize("embed", h)
	for l := range y.layers {
		name := func(s string) string { return fmt.Sprintf("%d.%s", l, s) }
		x := y.smoothed(name("attention in"), h)
		q, k, v := y.apply(name("query"), x, y.hidden), y.apply(name("key"), x, y.hidden), y.apply(name("value"), x, y.hidden)
		size := y.hidden / y.heads
		context := make([][]float64, len(h))
		for i := range h {
			context[i] = make([]float64, y.hidden)
			for head := range y.heads {
				weights, sum := make([]float64, len(h)), 0.0
				for j := range h {
					dot := 0.0
					for d := head * size; d < (head+1)*size; d++ {
						dot += q[i][d] * k[j][d]
					}
					weights[j] = math.Exp(dot / math.Sqrt(float64(size)))
					sum += weights[j]
				}
				for j := range h {
					for d := head * size; d < (head+1)*size; d++ {
						context[i][d] += weights[j] / sum * v[j][d]
					}
				}
			}
		}
		h = y.normalize(name("attention"), plus(y.apply(name("out"), context, y.hidden), h))
		up := y.apply(name("up"), y.smoothed(name("up in"), h), y.inner)
		for i := range up {
			for j, x := range up[i] {
				up[i][j] = x * 0.5 * (1 + math.Erf(x/math.Sqrt2))
			}
		}
		h = y.normalize(name("output"), plus(y.apply(name("down"), up, y.hidden), h))
	}
	return h
}

// logit is the output of a cross-encoder.
func (y *tiny) logit(ids []int32, second int) float64 {
	state := y.apply("pooler", y.states(ids, second)[:1], y.hidden)
	for j, x := range state[0] {
		state[0][j] = math.Tanh(x)
	}
	return y.apply("classifier", state, 1)[0][0]
}

// embed returns the unit vector of a text: its first state or the mean of all.
func (y *tiny) embed(ids []int32, first bool) []float64 {
	h := y.states(ids, len(ids))
	out, squares := make([]float64, y.hidden), 0.0
	for i, row := range h {
		for j, x := range row {
			if i == 0 || !first {
				out[j] += x
			}
		}
	}
	for _, x := range out {
		squares += x * x
	}
	for j := range out {
		out[j] /= math.Sqrt(squares)
	}
	return out
}

func plus(a, b [][]float64) [][]float64 {
	for i := range a {
		for j := range a[i] {
			a[i][j] += b[i][j]
		}
	}
	return a
}

func (y *tiny) apply(name string, x [][]float64, outputs int) [][]float64 {
	w, b := y.params[name+".weight"], y.params[name+".bias"]
	out := make([][]float64, len(x))
	for i := range x {
		out[i] = append([]float64(nil), b...)
		for k, v := range x[i] {
			for j := range outputs {
				out[i][j] += v * w[k*outputs+j]
			}
		}
	}
	return out
}

func (y *tiny) normalize(name string, x [][]float64) [][]float64 {
	w, b := y.params[name+".weight"], y.params[name+".bias"]
	for i := range x {
		mean, variance := 0.0, 0.0
		for _, v := range x[i] {
			mean += v / float64(y.hidden)
		}
		for _, v := range x[i] {
			variance += (v - mean) * (v - mean) / float64(y.hidden)
		}
		for j, v := range x[i] {
			x[i][j] = (v-mean)/math.Sqrt(variance+1e-12)*w[j] + b[j]
		}
	}
	return x
}

// tinyTokenizer has the words w0 to w31.
func tinyTokenizer(t testing.TB) (*wordpiece.Tokenizer, []byte) {
	vocabulary := map[string]int{"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
	for i := range 32 {
		vocabulary[fmt.Sprintf("w%d", i)] = 5 + i
	}
	type object = map[string]any
	b, err := json.Marshal(object{
		"added_tokens":   []object{},
		"normalizer":     object{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": nil, "lowercase": true},
		"pre_tokenizer":  object{"type": "BertPreTokenizer"},
		"post_processor": object{"type": "BertProcessing", "sep": []any{"[SEP]", 3}, "cls": []any{"[CLS]", 2}},
		"model":          object{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocabulary},
	})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := wordpiece.New(b)
	if err != nil {
		t.Fatal(err)
	}
	return tok, b
}
