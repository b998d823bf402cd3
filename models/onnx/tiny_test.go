package onnx

import (
	"encoding/binary"
	"maps"
	"math"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// The tests' models are written here field by field, after onnx.proto of the
// ONNX specification (IR version 8, opset 13): a few hundred bytes each, with
// results that can be computed by hand.

// message is a protocol buffer message under construction.
type message []byte

func (m message) varint(field protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), v)
}

func (m message) bytes(field protowire.Number, b []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), b)
}

func (m message) text(field protowire.Number, s string) message { return m.bytes(field, []byte(s)) }

// Element types of TensorProto.
const (
	float32Type = 1
	int64Type   = 7
)

// tensor is a TensorProto: dims = 1, data_type = 2, name = 8, raw_data = 9.
func tensor(name string, elem uint64, raw []byte, dims ...int) message {
	var m message
	for _, d := range dims {
		m = m.varint(1, uint64(d))
	}
	return m.varint(2, elem).text(8, name).bytes(9, raw)
}

func floats(name string, values []float32, dims ...int) message {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return tensor(name, float32Type, raw, dims...)
}

// node is a NodeProto: input = 1, output = 2, op_type = 4, attribute = 5.
func node(op string, inputs []string, output string, attributes ...message) message {
	var m message
	for _, in := range inputs {
		m = m.text(1, in)
	}
	m = m.text(2, output).text(4, op)
	for _, a := range attributes {
		m = m.bytes(5, a)
	}
	return m
}

// intAttribute is an AttributeProto: name = 1, i = 3, type = 20 (INT is 2).
func intAttribute(name string, v uint64) message {
	return message(nil).text(1, name).varint(3, v).varint(20, 2)
}

// value is a ValueInfoProto: name = 1, type = 2 with tensor_type = 1, elem_type
// = 1, shape = 2, dim = 1. A dimension below 0 is named instead of numbered.
func value(name string, elem uint64, dims ...int) message {
	var shape message
	for i, d := range dims {
		var dim message
		if d < 0 {
			dim = dim.text(2, []string{"batch", "sequence", "size"}[i])
		} else {
			dim = dim.varint(1, uint64(d))
		}
		shape = shape.bytes(1, dim)
	}
	tensorType := message(nil).varint(1, elem).bytes(2, shape)
	return message(nil).text(1, name).bytes(2, message(nil).bytes(1, tensorType))
}

// model is a ModelProto: ir_version = 1, graph = 7 (node = 1, name = 2,
// initializer = 5, input = 11, output = 12), opset_import = 8 (version = 2).
func model(nodes, initializers, outputs []message) []byte {
	var g message
	for _, n := range nodes {
		g = g.bytes(1, n)
	}
	g = g.text(2, "tiny")
	for _, t := range initializers {
		g = g.bytes(5, t)
	}
	for _, name := range []string{"input_ids", "attention_mask", "token_type_ids"} {
		g = g.bytes(11, value(name, int64Type, -1, -1))
	}
	for _, o := range outputs {
		g = g.bytes(12, o)
	}
	return message(nil).varint(1, 8).bytes(7, g).bytes(8, message(nil).text(1, "").varint(2, 13))
}

// tinyEncoder gives each token the vector of its id: last_hidden_state is row
// input_ids of the table.
func tinyEncoder() []byte {
	return model(
		[]message{node("Gather", []string{"table", "input_ids"}, "last_hidden_state")},
		[]message{floats("table", []float32{
			0, 0, 0, // [UNK]
			4, 0, 0, // [CLS]
			0, 0, 0, // [SEP]
			0, 3, 0, // red
			0, 0, 5, // green
			0, -3, 0, // blue
		}, 6, 3)},
		[]message{value("last_hidden_state", float32Type, -1, -1, 3)},
	)
}

// tinyCrossEncoder sums a weight for each token: of the query a tenth, of the
// text the whole and a tenth.
func tinyCrossEncoder() []byte {
	return model(
		[]message{
			node("Gather", []string{"table", "input_ids"}, "weights"),
			node("Cast", []string{"token_type_ids"}, "types", intAttribute("to", float32Type)),
			node("Add", []string{"types", "tenth"}, "shares"),
			node("Mul", []string{"weights", "shares"}, "parts"),
			node("ReduceSum", []string{"parts", "axes"}, "logits", intAttribute("keepdims", 1)),
		},
		[]message{
			floats("table", []float32{0, 0, 0, 1, 2, -3}, 6),
			floats("tenth", []float32{.1}, 1),
			tensor("axes", int64Type, binary.LittleEndian.AppendUint64(nil, 1), 1),
		},
		[]message{value("logits", float32Type, -1, 1)},
	)
}

const tinyBERT = `{"truncation":{"max_length":4,"strategy":"LongestFirst","stride":0,"direction":"Right"},"padding":null,"version":"1.0",
"added_tokens":[{"id":1,"content":"[CLS]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"[SEP]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
"pre_tokenizer":{"type":"BertPreTokenizer"},
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],
"pair":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}},{"Sequence":{"id":"B","type_id":1}},{"SpecialToken":{"id":"[SEP]","type_id":1}}],
"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[1],"tokens":["[CLS]"]},"[SEP]":{"id":"[SEP]","ids":[2],"tokens":["[SEP]"]}}},
"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
"vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"red":3,"green":4,"blue":5}}}`

// tinyRoberta frames with <s> and </s> and splits at white space; its ids are
// those of tinyBERT.
const tinyRoberta = `{"version":"1.0","truncation":null,"padding":null,
"added_tokens":[{"id":0,"content":"<unk>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":1,"content":"<s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true},{"id":2,"content":"</s>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
"normalizer":null,"pre_tokenizer":{"type":"WhitespaceSplit"},
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],
"pair":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}},{"Sequence":{"id":"B","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],
"special_tokens":{"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]},"</s>":{"id":"</s>","ids":[2],"tokens":["</s>"]}}},
"decoder":null,"model":{"type":"WordLevel","unk_token":"<unk>","vocab":{"<unk>":0,"<s>":1,"</s>":2,"red":3,"green":4,"blue":5}}}`

// folder writes a model's files into a new folder, with a pooling module of the mean.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"1_Pooling/config.json": `{"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":false}`}
	maps.Copy(all, files)
	for name, content := range all {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
