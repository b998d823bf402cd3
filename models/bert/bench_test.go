package bert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/models"
	"cairn/models/wordpiece"
)

// shipped reads the model of package minilm, which imports this one.
func shipped(b *testing.B) (weights, tokenizer []byte) {
	weights, err := os.ReadFile(filepath.Join("..", "minilm", weightsFile))
	if err != nil {
		b.Fatal(err)
	}
	if tokenizer, err = os.ReadFile(filepath.Join("..", "minilm", tokenizerFile)); err != nil {
		b.Fatal(err)
	}
	return weights, tokenizer
}

func eachKernelBench(b *testing.B, f func(b *testing.B, e *Encoder)) {
	weights, tokenizer := shipped(b)
	tok, err := wordpiece.New(tokenizer)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range Kernels() {
		b.Run(name, func(b *testing.B) {
			e, err := New(weights, tok, models.Description{Name: "minilm", MaxTokens: 256}, &Options{Kernel: name, Threads: 1})
			if err != nil {
				b.Fatal(err)
			}
			f(b, e)
		})
	}
}

func BenchmarkNew(b *testing.B) {
	weights, tokenizer := shipped(b)
	tok, err := wordpiece.New(tokenizer)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range Kernels() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := New(weights, tok, models.Description{Name: "minilm"}, &Options{Kernel: name}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkQuery(b *testing.B) {
	eachKernelBench(b, func(b *testing.B, e *Encoder) {
		for b.Loop() {
			if _, err := e.EmbedQuery(b.Context(), "how does the server decide which pod runs first every day"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkDocument embeds a text of 167 pieces.
func BenchmarkDocument(b *testing.B) {
	text := []string{strings.Repeat("the scheduler places every pod ", 27) + "the pod runs"}
	eachKernelBench(b, func(b *testing.B, e *Encoder) {
		if n := len(pieces{e.tokenizer, e.description.MaxTokens}.Encode(text[0])); n != 167 {
			b.Fatalf("%d pieces, want 167", n)
		}
		for b.Loop() {
			if _, err := e.EmbedDocuments(b.Context(), text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
