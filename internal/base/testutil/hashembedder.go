// Package testutil holds helpers of the tests of several packages. No program imports it.
package testutil

import (
	"cmp"
	"context"
	"hash/fnv"
	"math"
	"strings"
	"sync/atomic"

	"cairn/models"
)

// HashEmbedder is a small sentence encoder without a model: it hashes every word to one of
// HashDimension signed buckets, and normalizes the sum. Texts that share words are near each
// other, and equal texts have equal vectors in any process. It is for tests that need
// thousands of vectors quickly.
type HashEmbedder struct {
	// Tokens is the longest input; 0 means 256.
	Tokens int
	// Before, if not nil, is called with each batch. Its error is that of the call.
	Before func(texts []string) error

	embedded atomic.Int64
}

// HashDimension is the length of a HashEmbedder's vectors.
const HashDimension = 64

// Embedded returns the number of document texts embedded so far.
func (e *HashEmbedder) Embedded() int { return int(e.embedded.Load()) }

// Description implements models.Embedder.
func (e *HashEmbedder) Description() models.Description {
	return models.Description{Name: "hash", ID: "hash@0123456789ab", Dimension: HashDimension, MaxTokens: cmp.Or(e.Tokens, 256), Pooling: "mean"}
}

// EmbedDocuments implements models.Embedder.
func (e *HashEmbedder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e.Before != nil {
		if err := e.Before(texts); err != nil {
			return nil, err
		}
	}
	vectors := make([][]float32, len(texts))
	for i, t := range texts {
		vectors[i] = hashVector(t)
	}
	e.embedded.Add(int64(len(texts)))
	return vectors, nil
}

// EmbedQuery implements models.Embedder.
func (e *HashEmbedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	return hashVector(text), ctx.Err()
}

// Tokenizer implements models.Embedder.
func (e *HashEmbedder) Tokenizer() (models.Tokenizer, error) { return HashTokenizer{}, nil }

// Close implements models.Embedder.
func (e *HashEmbedder) Close() error { return nil }

func hashVector(text string) []float32 {
	v := make([]float32, HashDimension)
	for _, w := range strings.Fields(strings.ToLower(text)) {
		h := fnv.New64a()
		h.Write([]byte(w))
		sum := h.Sum64()
		sign := float32(1)
		if sum>>32&1 == 1 {
			sign = -1
		}
		v[sum%HashDimension] += sign
	}
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if square == 0 {
		v[0] = 1
		return v
	}
	for i := range v {
		v[i] *= float32(1 / math.Sqrt(square))
	}
	return v
}

// HashTokenizer counts a word of n bytes as ⌈n/5⌉ pieces. The count of a text is the sum of
// those of its words, as the interface requires.
type HashTokenizer struct{}

// Count implements models.Tokenizer.
func (HashTokenizer) Count(text string) int {
	n := 0
	for _, w := range strings.Fields(text) {
		n += (len(w) + 4) / 5
	}
	return n
}

// Encode implements models.Tokenizer: a start and an end token around one id
// for each piece.
func (t HashTokenizer) Encode(text string) []int32 {
	ids := make([]int32, t.Count(text)+2)
	for i := range ids {
		ids[i] = int32(i)
	}
	return ids
}
