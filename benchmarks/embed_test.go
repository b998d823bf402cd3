package benchmarks

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"cairn/models"
	"cairn/models/wordpiece"
)

// wordEmbedder counts words as pieces and the calls it gets.
type wordEmbedder struct {
	documents, queries int
	err                error
}

func (w *wordEmbedder) Description() models.Description      { return models.Description{Dimension: 1} }
func (w *wordEmbedder) Tokenizer() (models.Tokenizer, error) { return w, nil }
func (w *wordEmbedder) Count(text string) int                { return len(strings.Fields(text)) }
func (w *wordEmbedder) Encode(text string) []int32           { return make([]int32, w.Count(text)+2) }
func (w *wordEmbedder) Close() error                         { return nil }
func (w *wordEmbedder) Threads() int                         { return 3 }
func (w *wordEmbedder) Kernel() string                       { return "words" }

func (w *wordEmbedder) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	w.documents += len(texts)
	return make([][]float32, len(texts)), w.err
}

func (w *wordEmbedder) EmbedQuery(context.Context, string) ([]float32, error) {
	w.queries++
	return []float32{1}, nil
}

func TestEmbed(t *testing.T) {
	e := &wordEmbedder{}
	got, err := Embed(t.Context(), e, []string{"a b c", "", "d"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got.Texts != 3 || got.Tokens != 10 || got.QueryTokens != 13 || got.Threads != 3 || got.Kernel != "words" {
		t.Errorf("got %+v, want 3 texts, 10 tokens, 13 query tokens, 3 threads, kernel words", got)
	}
	if e.documents != 3+2*3 || e.queries != embedQueries {
		t.Errorf("embedded %d documents and %d queries, want 9 and %d", e.documents, e.queries, embedQueries)
	}
	if r := got.TokensPerSecond / got.TextsPerSecond; r < 3.3 || r > 3.4 || got.QueryP90 < got.QueryP50 {
		t.Errorf("got %+v, want 10/3 tokens a text and p90 >= p50", got)
	}
}

func TestEmbedErrors(t *testing.T) {
	if _, err := Embed(t.Context(), &wordEmbedder{}, nil, 1); err == nil {
		t.Error("no texts: got no error")
	}
	want := errors.New("broken")
	if _, err := Embed(t.Context(), &wordEmbedder{err: want}, []string{"a"}, 1); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestEmbedQuery(t *testing.T) {
	b, err := os.ReadFile("../models/minilm/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := wordpiece.New(b)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(tok.AppendIDs(nil, embedQuery, 256)); got != 13 {
		t.Errorf("embedQuery has %d pieces, want 13", got)
	}
}
