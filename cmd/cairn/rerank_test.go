package main

import (
	"bytes"
	encoding "encoding/binary"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/retriever"
)

// crossEncoder writes a folder with an ONNX model that gives a pair of texts the sum of a
// weight for each word, and its tokenizer.
func crossEncoder(t *testing.T, weights map[string]float32) string {
	t.Helper()
	vocabulary := map[string]int{"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}
	table := make([]float32, 3)
	for word, w := range weights {
		vocabulary[word] = len(table)
		table = append(table, w)
	}
	type object = map[string]any
	special := func(id int, text string) object {
		return object{"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
	}
	tokenizer, err := json.Marshal(object{
		"added_tokens":   []object{special(1, "[CLS]"), special(2, "[SEP]")},
		"normalizer":     object{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": nil, "lowercase": true},
		"pre_tokenizer":  object{"type": "BertPreTokenizer"},
		"post_processor": object{"type": "BertProcessing", "sep": []any{"[SEP]", 2}, "cls": []any{"[CLS]", 1}},
		"model":          object{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocabulary},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{"model.onnx": sumOfWeights(table), "tokenizer.json": tokenizer} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// sumOfWeights is the ONNX graph ReduceSum(Gather(table, input_ids), axes=1, keepdims).
func sumOfWeights(table []float32) []byte {
	// A field of a protocol buffer is its number and kind, then the value.
	number := func(b []byte, n, v int) []byte {
		return encoding.AppendUvarint(encoding.AppendUvarint(b, uint64(n<<3)), uint64(v))
	}
	field := func(b []byte, n int, v []byte) []byte {
		b = encoding.AppendUvarint(encoding.AppendUvarint(b, uint64(n<<3|2)), uint64(len(v)))
		return append(b, v...)
	}
	node := func(op, output string, attribute []byte, inputs ...string) (b []byte) {
		for _, in := range inputs {
			b = field(b, 1, []byte(in))
		}
		b = field(field(b, 2, []byte(output)), 4, []byte(op))
		if attribute != nil {
			b = field(b, 5, attribute)
		}
		return b
	}
	tensor := func(name string, kind, length int, raw []byte) []byte {
		return field(field(number(number(nil, 1, length), 2, kind), 8, []byte(name)), 9, raw)
	}
	value := func(name string, kind int, last []byte) []byte {
		shape := field(field(nil, 1, field(nil, 2, []byte("batch"))), 1, last)
		return field(field(nil, 1, []byte(name)), 2, field(nil, 1, field(number(nil, 1, kind), 2, shape)))
	}
	var raw []byte
	for _, w := range table {
		raw = encoding.LittleEndian.AppendUint32(raw, math.Float32bits(w))
	}
	keep := number(number(field(nil, 1, []byte("keepdims")), 3, 1), 20, 2)
	graph := field(nil, 1, node("Gather", "weights", nil, "table", "input_ids"))
	graph = field(graph, 1, node("ReduceSum", "logits", keep, "weights", "axes"))
	graph = field(graph, 2, []byte("sum"))
	graph = field(graph, 5, tensor("table", 1, len(table), raw))
	graph = field(graph, 5, tensor("axes", 7, 1, encoding.LittleEndian.AppendUint64(nil, 1)))
	for _, in := range []string{"input_ids", "attention_mask", "token_type_ids"} {
		graph = field(graph, 11, value(in, 7, field(nil, 2, []byte("tokens"))))
	}
	graph = field(graph, 12, value("logits", 1, number(nil, 1, 1)))
	return field(field(number(nil, 1, 8), 7, graph), 8, number(field(nil, 1, nil), 2, 13))
}

// TestRerank searches with a cross-encoder that prefers one word: named by the flag, and
// by the configuration of a folder that the user trusts.
func TestRerank(t *testing.T) {
	cairn, root := binary(t), t.TempDir()
	t.Setenv("CAIRN_HOME", t.TempDir())
	t.Setenv("CAIRN_RETRIEVAL__RERANK_MS", "60000") // on a busy machine, too
	for name, text := range map[string]string{
		"green.md": "# Green leaves\n\nTea of one kind.\n", "black.md": "# Black leaves\n\nA pot, and tea of a kind.\n",
		"kettle.md": "# Kettles\n\nKettle by kettle: water for tea.\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	model := crossEncoder(t, map[string]float32{"kettle": 2})
	run := func(args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		cmd := exec.Command(cairn, append(args, "-C", root)...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("cairn %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
		}
		return stdout.String()
	}
	found := func(args ...string) (paths []string) {
		t.Helper()
		var answer retriever.Answer
		out := run(append([]string{"search", "--json", "--mode", "keyword", "tea"}, args...)...)
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		for _, r := range answer.Results {
			paths = append(paths, r.Path)
		}
		return paths
	}
	run("index")
	plain, want := found(), []string{"kettle.md", "black.md", "green.md"}
	if slices.Equal(plain, want) {
		t.Fatalf("without a re-ranker: %v already", plain)
	}
	if got := found("--rerank", model); !slices.Equal(got, want) {
		t.Errorf("with --rerank: %v, want %v", got, want)
	}
	explained := run("explain", "--mode", "keyword", "--rerank", model, "tea")
	for _, part := range []string{"Re-ranker  3 of 3 passages read", "   1       3    4.000  kettle.md"} {
		if !strings.Contains(explained, part) {
			t.Errorf("explain lacks %q:\n%s", part, explained)
		}
	}
	run("init")
	run("config", "set", "retrieval.rerank", model)
	if got := found(); !slices.Equal(got, plain) {
		t.Errorf("in a folder that the user does not trust: %v, want %v", got, plain)
	}
	run("trust", root)
	if got := found(); !slices.Equal(got, want) {
		t.Errorf("in a trusted folder: %v, want %v", got, want)
	}
	missing := exec.Command(cairn, "search", "tea", "--rerank", filepath.Join(root, "no"), "-C", root)
	if out, err := missing.CombinedOutput(); err == nil || !strings.Contains(string(out), "opening re-ranker") {
		t.Errorf("a folder that does not exist: %v, %s", err, out)
	}
}
