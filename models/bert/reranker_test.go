package bert

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// crossEncoder generates a model and its folder.
func crossEncoder(t testing.TB, spec tinySpec) (*tiny, string) {
	y, file := spec.generate()
	_, tokenizer := tinyTokenizer(t)
	dir := t.TempDir()
	for name, b := range map[string][]byte{weightsFile: file, tokenizerFile: tokenizer} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return y, dir
}

// TestReranker compares every kernel with a float64 cross-encoder.
func TestReranker(t *testing.T) {
	for _, form := range []string{"pair", "fused pair", "int8 pair", "int8 dqm pair"} {
		t.Run(form, func(t *testing.T) {
			eachKernel(t, func(t *testing.T, kernel string) {
				y, dir := crossEncoder(t, tinySpec{37, 40, 64, 96, 2, 2, form})
				r, err := OpenReranker(dir, &Options{Kernel: kernel})
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				texts := []string{"w1 w2", "", "w9", strings.Repeat("w3 w4 ", 40), "w9"}
				got, err := r.Rerank(t.Context(), "w5 w6", texts)
				if err != nil || len(got) != len(texts) {
					t.Fatalf("scores %v, %v", got, err)
				}
				near := 1e-4
				if y.has("int8") {
					near = 0.15
				}
				for i, text := range texts {
					ids := []int32{2, 10, 11, 3}
					for _, w := range strings.Fields(text) {
						if len(ids) < 39 {
							ids = append(ids, int32(5+w[1]-'0'))
						}
					}
					if want := y.logit(append(ids, 3), 4); math.Abs(want-got[i]) > near {
						t.Errorf("%.20q: %v, want %v", text, got[i], want)
					}
				}
				if got[2] != got[4] {
					t.Errorf("one text scores %v and %v", got[2], got[4])
				}
			})
		})
	}
}

func TestRerankerDeadline(t *testing.T) {
	_, dir := crossEncoder(t, tinySpec{37, 40, 64, 96, 2, 2, "pair"})
	r, err := OpenReranker(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if got, err := r.Rerank(ctx, "w1", []string{"w2"}); err != nil || len(got) != 0 {
		t.Errorf("after the deadline: %v, %v, want no scores", got, err)
	}
	cancelled, stop := context.WithCancel(t.Context())
	stop()
	if _, err := r.Rerank(cancelled, "w1", []string{"w2"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	all, err := r.Rerank(t.Context(), "w1", slices.Repeat([]string{"w2 w3"}, 50))
	if err != nil || len(all) != 50 {
		t.Errorf("%d scores, %v, want 50", len(all), err)
	}
}

func TestOpenRerankerRefuses(t *testing.T) {
	_, encoder := crossEncoder(t, tinySpec{37, 40, 64, 96, 2, 2, ""})
	if _, err := OpenReranker(encoder, nil); err == nil || !strings.Contains(err.Error(), "classifier") {
		t.Errorf("an encoder: %v", err)
	}
	if _, err := OpenReranker(t.TempDir(), nil); err == nil {
		t.Error("an empty folder opens")
	}
}

// BenchmarkRerank scores 30 pairs of 170 tokens with a cross-encoder of the size of
// MiniLM-L6, as one search does.
func BenchmarkRerank(b *testing.B) {
	for _, form := range []string{"int8 pair", "pair"} {
		b.Run(form, func(b *testing.B) {
			_, dir := crossEncoder(b, tinySpec{37, 256, 384, 1536, 12, 6, form})
			r, err := OpenReranker(dir, nil)
			if err != nil {
				b.Fatal(err)
			}
			texts := slices.Repeat([]string{strings.Repeat("w3 w4 ", 79)}, 30)
			for b.Loop() {
				if _, err := r.Rerank(b.Context(), "w1 w2 w3 w4 w5 w6 w7 w8 w9", texts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
