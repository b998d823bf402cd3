// Package models defines the interfaces of language models. Its subpackages implement
// them: bert and onnx are engines, minilm contains the built-in weights, wordpiece splits
// text for the encoders, bpe counts tokens for the budgets of answers, and offheap allocates
// memory for vectors and weights.
package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
)

// Description describes a sentence encoder and its use. It comes from the model's folder
// (see ReadDescription) or is built in. Every index stores it, so that vectors of two
// models are never mixed.
type Description struct {
	// Name is the model's published name, such as "all-MiniLM-L6-v2".
	Name string `json:"name"`
	// ID is Name, "@" and the first 12 hex digits of the SHA-256 over the
	// weights, the tokenizer and the settings below. Two embedders with equal
	// IDs produce interchangeable vectors.
	ID string `json:"id"`
	// Dimension is the length of a vector.
	Dimension int `json:"dimension"`
	// MaxTokens is the longest input in word pieces, including special tokens.
	// Longer texts are truncated.
	MaxTokens int `json:"max_tokens"`
	// Pooling is "mean" (over all tokens) or "cls" (the first token).
	Pooling string `json:"pooling"`
	// QueryPrefix and DocumentPrefix precede queries and documents.
	QueryPrefix    string `json:"query_prefix,omitempty"`
	DocumentPrefix string `json:"document_prefix,omitempty"`
	// SymbolPrefix marks a text as a symbol of source code. The encoder reads the text
	// after it with weights for symbols; "" means that it has none. ID does not include
	// it, because equal texts have equal vectors.
	SymbolPrefix string `json:"-"`
	// MinSimilarity is the cosine at or below which a document without a matching
	// keyword is not an answer. It depends on the range of the model's cosines.
	MinSimilarity float64 `json:"min_similarity"`
	// Unrelated is the mean cosine of texts on different subjects, in [0, 1). It does not
	// affect vectors, so ID does not include it.
	Unrelated float64 `json:"unrelated,omitempty"`
	// Kernel names the code that computes vectors in this process; "" if it is unknown.
	// Kernels round differently, by up to .004 in cosine. ID does not include it.
	Kernel string `json:"kernel,omitempty"`
}

// Complete sets the defaults of d and returns an error for invalid values. longest is the
// default of MaxTokens.
func (d *Description) Complete(longest int) error {
	d.MaxTokens = cmp.Or(d.MaxTokens, longest)
	d.Pooling = cmp.Or(d.Pooling, "mean")
	switch {
	case d.Name == "":
		return errors.New("the name is empty")
	case d.MaxTokens < 2:
		return fmt.Errorf("max_tokens %d, want 2 to the %d positions of the model", d.MaxTokens, longest)
	case d.Pooling != "mean" && d.Pooling != "cls":
		return fmt.Errorf("unknown pooling %q, want {mean,cls}", d.Pooling)
	case !(d.MinSimilarity >= -1 && d.MinSimilarity <= 1):
		return fmt.Errorf("min_similarity %v, want -1 to 1", d.MinSimilarity)
	case !(d.Unrelated >= 0 && d.Unrelated < 1):
		return fmt.Errorf("unrelated %v, want 0 to below 1", d.Unrelated)
	}
	return nil
}

// Embedder turns text into unit vectors of Description().Dimension float32s.
//
// Every method may be called concurrently. A text's vector does not depend on
// the other texts of its batch. Empty text gives a unit vector, never NaN.
// A cancelled ctx ends the call early with ctx.Err() and no vectors.
type Embedder interface {
	Description() Description
	// EmbedDocuments returns a vector for each text, in the order of texts. An
	// empty slice gives an empty slice. The vectors belong to the caller.
	EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error)
	// EmbedQuery returns the vector of one query.
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
	// Tokenizer returns the model's tokenizer, or why the model cannot be opened.
	Tokenizer() (Tokenizer, error)
	io.Closer
}

// Tokenizer counts the word pieces of an encoder. It is safe for concurrent use.
type Tokenizer interface {
	// Count returns the number of word pieces of text without special tokens.
	// Count(a+" "+b) == Count(a)+Count(b).
	Count(text string) int
	// Encode returns the ids of text with special tokens, truncated to the model's
	// longest input.
	Encode(text string) []int32
}

// Reranker scores how well texts answer a query, as a cross-encoder does. It is safe for
// concurrent use.
type Reranker interface {
	// Rerank returns the logits of the texts in order; larger is better. If the deadline
	// of ctx passes, it returns the logits of the first texts, as many as are done. If
	// ctx is cancelled, it fails.
	Rerank(ctx context.Context, query string, texts []string) ([]float64, error)
	io.Closer
}

// Tag is the role of a word in a request.
type Tag uint8

// The roles of words. A part is what may need a tool of its own.
const (
	Begins  Tag = iota // the first word of a part
	Within             // a further word of a part
	Outside            // in no part: "and then", a reason, a greeting
	Tags    = 3
)

// A Reader reads requests to tools. It is safe for concurrent use.
type Reader interface {
	// Rerank is that of Reranker, for a request and the texts of tools. A negative logit means
	// that the tool more likely does not serve the request.
	Rerank(ctx context.Context, request string, texts []string) ([]float64, error)
	// Tag returns the most probable tags of the words of a request, which are in lines, and
	// their probability. No word is within a part that none before it begins.
	Tag(ctx context.Context, lines [][]string) (tags []Tag, probability float64, err error)
}

// Scored returns the scores before the first one that is not done, as Rerank does.
func Scored(ctx context.Context, scores []float64, done []bool) ([]float64, error) {
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	for i := range done {
		if !done[i] {
			return scores[:i], nil
		}
		if math.IsNaN(scores[i]) {
			return nil, errors.New("the re-ranker gave NaN")
		}
	}
	return scores, nil
}

// BudgetCounter counts the tokens of large language models, which read answers. It is
// not used for the size of chunks. It is safe for concurrent use.
type BudgetCounter interface {
	// CountTokens returns the number of tokens of text; 0 for "".
	CountTokens(text string) int
}
