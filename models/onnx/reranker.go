package onnx

import (
	"context"
	"errors"
	"fmt"

	"cairn/models"
)

// Reranker is a cross-encoder with one logit for a pair of texts. It implements
// models.Reranker.
type Reranker struct{ network *network }

var _ models.Reranker = (*Reranker)(nil)

// OpenReranker returns the cross-encoder in folder dir. The folder contains an ONNX file
// (named model.onnx if there are several) and tokenizer.json. Pairs are truncated to the
// smaller of 512 tokens and max_position_embeddings in config.json. OpenReranker runs the
// model once on a pair of empty texts, and fails if the engine does not support the graph.
// The caller must close the reranker.
func OpenReranker(dir string) (*Reranker, error) {
	n, err := openNetwork(dir)
	if err != nil {
		return nil, fmt.Errorf("opening reranker %s: %w", dir, err)
	}
	r := &Reranker{n}
	if _, err := r.score("", ""); err != nil {
		return nil, errors.Join(fmt.Errorf("opening reranker %s: %w", dir, err), n.close())
	}
	return r, nil
}

// Rerank implements models.Reranker. A deadline takes effect between two texts.
func (r *Reranker) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	scores := make([]float64, len(texts))
	done := make([]bool, len(texts))
	for i, text := range texts {
		if ctx.Err() != nil {
			break
		}
		var err error
		if scores[i], err = r.score(query, text); err != nil {
			return nil, fmt.Errorf("scoring text %d of %d: %w", i+1, len(texts), err)
		}
		done[i] = true
	}
	return models.Scored(ctx, scores, done)
}

// Close implements io.Closer. The reranker must not be used afterwards.
func (r *Reranker) Close() error { return r.network.close() }

func (r *Reranker) score(query, text string) (float64, error) {
	output, err := r.network.run(r.network.pieces.AppendPair(nil, query, text, r.network.longest))
	if err != nil {
		return 0, err
	}
	logits, ok := output.([][]float32)
	if !ok || len(logits) != 1 || len(logits[0]) != 1 {
		return 0, errors.New("the model's first output is not one number for a pair; is it a cross-encoder?")
	}
	return float64(logits[0][0]), nil
}
