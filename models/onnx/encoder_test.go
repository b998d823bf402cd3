package onnx

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cairn/models"
)

// near tolerates the rounding of float32.
var near = cmpopts.EquateApprox(0, 1e-6)

// sqrt41 is the length of (4, 5).
var sqrt41 = float32(math.Sqrt(41))

func openTiny(t *testing.T, files map[string]string) *Encoder {
	t.Helper()
	e, err := Open(folder(t, files))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return e
}

func TestEncoder(t *testing.T) {
	for _, c := range []struct {
		name, tokenizer, description, text string
		want                               []float32
	}{
		{"mean", tinyBERT, `{}`, "", []float32{1, 0, 0}},
		{"mean", tinyBERT, `{}`, "Red", []float32{.8, .6, 0}},             // 4,3,0 over 3 tokens
		{"mean", tinyBERT, `{}`, "red blue", []float32{1, 0, 0}},          // red and blue cancel
		{"mean", tinyBERT, `{}`, "red blue unseen", []float32{1, 0, 0}},   // [UNK] is 0
		{"cls", tinyBERT, `{"pooling":"cls"}`, "red", []float32{1, 0, 0}}, // [CLS] alone
		{"cut", tinyBERT, `{"max_tokens":3}`, "red green green", []float32{.8, .6, 0}},
		{"prefix", tinyBERT, `{"document_prefix":"red "}`, "blue green", []float32{4 / sqrt41, 0, 5 / sqrt41}},
		{"roberta", tinyRoberta, `{}`, "red", []float32{.8, .6, 0}},
		{"roberta cut", tinyRoberta, `{"max_tokens":3}`, "red green green", []float32{.8, .6, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := openTiny(t, map[string]string{"model.onnx": string(tinyEncoder()), "tokenizer.json": c.tokenizer, "cairn.json": c.description})
			got, err := e.EmbedDocuments(t.Context(), []string{c.text})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]float32{c.want}, got, near); diff != "" {
				t.Errorf("EmbedDocuments(%q) (-want +got)\n%s", c.text, diff)
			}
		})
	}
}

func TestDescription(t *testing.T) {
	files := map[string]string{"model.onnx": string(tinyEncoder()), "tokenizer.json": tinyBERT}
	e := openTiny(t, files)
	got := e.Description()
	if got.ID == "" || !strings.HasPrefix(got.ID, "tiny@") {
		t.Errorf("ID = %q, want tiny@...", got.ID)
	}
	if want := (models.Description{Name: "tiny", ID: got.ID, Dimension: 3, MaxTokens: 512, Pooling: "mean", Unrelated: got.Unrelated}); got != want || got.Unrelated <= 0 {
		t.Errorf("Description() = %+v, want %+v", got, want)
	}
	files["config.json"] = `{"max_position_embeddings":64}`
	if got := openTiny(t, files).Description().MaxTokens; got != 64 {
		t.Errorf("MaxTokens = %d with 64 positions, want 64", got)
	}
	files["onnx/model_quantized.onnx"] = "not opened"
	if got := openTiny(t, files).Description().Dimension; got != 3 {
		t.Errorf("Dimension = %d with a second file, want 3", got)
	}
}

func TestQueryPrefix(t *testing.T) {
	e := openTiny(t, map[string]string{"model.onnx": string(tinyEncoder()), "tokenizer.json": tinyBERT, "cairn.json": `{"query_prefix":"red ","pooling":"mean"}`})
	got, err := e.EmbedQuery(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if want := []float32{.8, .6, 0}; !cmp.Equal(got, want, near) {
		t.Errorf("EmbedQuery = %v, want %v", got, want)
	}
}

func TestTokenizer(t *testing.T) {
	for name, file := range map[string]string{"bert": tinyBERT, "roberta": tinyRoberta} {
		e := openTiny(t, map[string]string{"model.onnx": string(tinyEncoder()), "tokenizer.json": file, "cairn.json": `{"max_tokens":4,"pooling":"mean"}`})
		const text = "red green blue red green"
		if got, want := (counter{e}).Count(text), 5; got != want {
			t.Errorf("%s: Count(%q) = %d, want %d", name, text, got, want)
		}
		if got, want := (counter{e}).Count(""), 0; got != want {
			t.Errorf("%s: Count(\"\") = %d, want %d", name, got, want)
		}
		if got, want := (counter{e}).Encode(text), []int32{1, 3, 4, 2}; !cmp.Equal(got, want) {
			t.Errorf("%s: Encode(%q) = %d, want %d", name, text, got, want)
		}
	}
}

func TestEmptyCallAndCancelledContext(t *testing.T) {
	e := openTiny(t, map[string]string{"model.onnx": string(tinyEncoder()), "tokenizer.json": tinyBERT})
	if got, err := e.EmbedDocuments(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("EmbedDocuments(nil) = %v, %v, want no vectors and no error", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := e.EmbedDocuments(ctx, []string{"red"}); !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("EmbedDocuments with a cancelled context = %v, %v", got, err)
	}
	if got, err := e.EmbedQuery(ctx, "red"); !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("EmbedQuery with a cancelled context = %v, %v", got, err)
	}
}

// Calls from many goroutines, lengths mixed, give what single calls give.
func TestConcurrentUse(t *testing.T) {
	e := openTiny(t, map[string]string{"model.onnx": string(tinyEncoder()), "tokenizer.json": tinyBERT})
	texts := []string{"", "red", "red green", "green green green", "blue red green red", "unseen"}
	want, err := e.EmbedDocuments(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				got, err := e.EmbedDocuments(t.Context(), texts)
				if err != nil || !cmp.Equal(got, want) {
					t.Errorf("EmbedDocuments = %v, %v, want %v", got, err, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestNewLeavesNoFiles(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	e, err := New(tinyEncoder(), []byte(tinyBERT), models.Description{Name: "bytes", Pooling: "mean"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if left, err := filepath.Glob(filepath.Join(tmp, "cairn-*")); err != nil || len(left) > 0 {
		t.Errorf("files left: %v %v", left, err)
	}
	if got, err := e.EmbedQuery(t.Context(), "green red"); err != nil || len(got) != 3 {
		t.Errorf("EmbedQuery after the files are gone = %v, %v", got, err)
	}
	if _, err := New([]byte("broken"), []byte(tinyBERT), models.Description{Name: "bytes", Pooling: "mean"}); err == nil {
		t.Error("New of broken weights gave no error")
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "cairn-*")); err != nil || len(left) > 0 {
		t.Errorf("files left after an error: %v %v", left, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	encoder := string(tinyEncoder())
	unsupported := string(model([]message{node("NoSuchOperator", []string{"input_ids"}, "out")}, nil, []message{value("out", float32Type, -1, -1, 3)}))
	flat := string(model([]message{node("Cast", []string{"input_ids"}, "out", intAttribute("to", float32Type))}, nil, []message{value("out", float32Type, -1)}))
	zero := string(model(
		[]message{node("Gather", []string{"table", "input_ids"}, "out")},
		[]message{floats("table", make([]float32, 12), 6, 2)},
		[]message{value("out", float32Type, -1, -1, 2)}))
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no tokenizer", map[string]string{"model.onnx": encoder}, "tokenizer.json"},
		{"no model", map[string]string{"tokenizer.json": tinyBERT}, ".onnx"},
		{"two models", map[string]string{"tokenizer.json": tinyBERT, "a.onnx": encoder, "b.onnx": encoder}, "model.onnx"},
		{"broken model", map[string]string{"tokenizer.json": tinyBERT, "model.onnx": encoder[:len(encoder)/2]}, "tiny"},
		{"empty model", map[string]string{"tokenizer.json": tinyBERT, "model.onnx": ""}, "tiny"},
		{"broken tokenizer", map[string]string{"tokenizer.json": "{", "model.onnx": encoder}, "tiny"},
		{"other WordPiece", map[string]string{"tokenizer.json": strings.Replace(tinyBERT, "BertPreTokenizer", "Whitespace", 1), "model.onnx": encoder}, `pre_tokenizer "Whitespace"`},
		{"truncating tokenizer", map[string]string{"tokenizer.json": strings.Replace(tinyRoberta, `"truncation":null`, `"truncation":{"max_length":8,"strategy":"LongestFirst","stride":0,"direction":"Right"}`, 1), "model.onnx": encoder}, "truncation"},
		{"unsupported operator", map[string]string{"tokenizer.json": tinyBERT, "model.onnx": unsupported}, "NoSuchOperator"},
		{"one dimension", map[string]string{"tokenizer.json": tinyBERT, "model.onnx": flat}, "want 2 or 3 dimensions"},
		{"zero vector", map[string]string{"tokenizer.json": tinyBERT, "model.onnx": zero}, "length 0"},
		{"no pooling", map[string]string{"tokenizer.json": tinyBERT, "model.onnx": encoder, "modules.json": "[]"}, "1_Pooling/config.json"},
		{"pooling", map[string]string{"tokenizer.json": tinyBERT, "model.onnx": encoder, "cairn.json": `{"pooling":"max"}`}, `pooling "max"`},
		{"dimension", map[string]string{"tokenizer.json": tinyBERT, "model.onnx": encoder, "cairn.json": `{"dimension":4,"pooling":"mean"}`}, "dimension 4"},
		{"max tokens", map[string]string{"tokenizer.json": tinyBERT, "model.onnx": encoder, "cairn.json": `{"max_tokens":1,"pooling":"mean"}`}, "max_tokens 1"},
		{"similarity", map[string]string{"tokenizer.json": tinyBERT, "model.onnx": encoder, "cairn.json": `{"min_similarity":2,"pooling":"mean"}`}, "min_similarity 2"},
		{"description", map[string]string{"tokenizer.json": tinyBERT, "model.onnx": encoder, "cairn.json": `{"poolin":""}`}, "poolin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := Open(folder(t, c.files))
			if err == nil {
				e.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Open() = %v, want an error with %q", err, c.want)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open(absent) = %v, want %v", err, os.ErrNotExist)
	}
}
