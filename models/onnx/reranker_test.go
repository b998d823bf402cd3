package onnx

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReranker(t *testing.T) {
	r, err := OpenReranker(folder(t, map[string]string{
		"model.onnx": string(tinyCrossEncoder()), "tokenizer.json": tinyBERT, "config.json": `{"max_position_embeddings":12}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// Weights: red 1, green 2, blue -3; a query's token counts a tenth, a
	// text's 1.1.
	texts := []string{"red", "green green", "blue", "", "unseen", strings.Repeat("red ", 100)}
	got, err := r.Rerank(t.Context(), "red green", texts)
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{.3 + 1.1, .3 + 4.4, .3 - 3.3, .3, .3, .3 + 7*1.1} // 12 tokens: 4 of the query, 7 of the text, [SEP]
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("Rerank() (-want +got)\n%s", diff)
	}
	// A long query keeps half of the room at most: 6 tokens, [CLS] and [SEP]
	// among them; the text fits whole.
	got, err = r.Rerank(t.Context(), strings.Repeat("green ", 50), []string{"red"})
	if want := 4*.2 + 1.1; err != nil || len(got) != 1 || math.Abs(got[0]-want) > 1e-6 {
		t.Errorf("Rerank of a long query = %v, %v, want %v", got, err, want)
	}
	if got, err := r.Rerank(t.Context(), "red", nil); err != nil || len(got) != 0 {
		t.Errorf("Rerank(nil) = %v, %v, want no scores and no error", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := r.Rerank(ctx, "red", []string{"red"}); !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("Rerank with a cancelled context = %v, %v", got, err)
	}
}

// A tokenizer that is not BERT's joins the pair with its separator twice. The
// model's weights of special tokens are 0 and its types all 0, so each token
// counts a tenth.
func TestRerankerRoberta(t *testing.T) {
	r, err := OpenReranker(folder(t, map[string]string{"model.onnx": string(tinyCrossEncoder()), "tokenizer.json": tinyRoberta}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := r.Rerank(t.Context(), "red", []string{"green green", "blue"})
	want := []float64{.5, -.2}
	if err != nil || !cmp.Equal(got, want, near) {
		t.Errorf("Rerank = %v, %v, want %v", got, err, want)
	}
}

func TestOpenRerankerRefusesAnEncoder(t *testing.T) {
	_, err := OpenReranker(folder(t, map[string]string{"model.onnx": string(tinyEncoder()), "tokenizer.json": tinyBERT}))
	if err == nil || !strings.Contains(err.Error(), "is it a cross-encoder?") {
		t.Errorf("OpenReranker(an encoder) = %v", err)
	}
}
