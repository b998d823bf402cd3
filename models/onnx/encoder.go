// Package onnx runs ONNX sentence encoders with hugot: on its Go engine in a
// plain build, on ONNX Runtime with the build tag ORT (see README.md). It is for
// models that package bert does not support, and not for the shipped model: the
// Go engine is about a hundred times slower than bert.
package onnx

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"cairn/models"
)

// Encoder is a sentence encoder. It implements models.Embedder. It runs texts one at a
// time, because 8-bit models quantise activations over a whole batch, so that a text's
// vector would depend on the other texts.
type Encoder struct {
	network     *network
	description models.Description
}

var _ models.Embedder = (*Encoder)(nil)

// Open returns the sentence encoder in folder dir. The folder contains an ONNX file
// (named model.onnx if there are several), tokenizer.json and the files that describe the
// model (see models.ReadDescription). By default, the longest input is the smaller of 512
// and max_position_embeddings in config.json, there are no prefixes, and the scale of
// similarities is measured. A model whose output is token vectors must specify the
// pooling. Open runs the model once on the empty text, and fails if the engine does not
// support the graph. The caller must close the encoder.
func Open(dir string) (e *Encoder, err error) {
	desc, err := models.ReadDescription(dir)
	if err != nil {
		return nil, err
	}
	if e, err = open(dir, desc); err != nil {
		return nil, err
	}
	if e.description.Unrelated == 0 {
		if e.description.Unrelated, err = models.Baseline(context.Background(), e); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	return e, nil
}

// New returns an encoder from the bytes of an ONNX file and its tokenizer.json, and a
// description, which must have a Name. It writes the bytes to a private temporary folder,
// which it removes.
func New(weights, tokenizerJSON []byte, desc models.Description) (e *Encoder, err error) {
	dir, err := os.MkdirTemp("", "cairn-model-")
	if err != nil {
		return nil, fmt.Errorf("opening model %s: %w", desc.Name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for name, b := range map[string][]byte{"model.onnx": weights, "tokenizer.json": tokenizerJSON} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return nil, fmt.Errorf("opening model %s: %w", desc.Name, err)
		}
	}
	return open(dir, desc)
}

func open(dir string, desc models.Description) (*Encoder, error) {
	n, err := openNetwork(dir)
	if err != nil {
		return nil, fmt.Errorf("opening model %s: %w", dir, err)
	}
	e := &Encoder{network: n, description: desc}
	if err := e.complete(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening model %s: %w", dir, err), n.close())
	}
	return e, nil
}

// complete completes the description from the model, and returns an error if they
// contradict each other.
func (e *Encoder) complete() error {
	d := &e.description
	if outputs := e.network.pipeline.Model.OutputsMeta; d.Pooling == "" && len(outputs[0].Dimensions) == 3 {
		return models.ErrPooling
	}
	if err := d.Complete(e.network.longest); err != nil {
		return fmt.Errorf("describing model: %w", err)
	}
	v, err := e.embed("")
	if err != nil {
		return err
	}
	if d.Dimension != 0 && d.Dimension != len(v) {
		return fmt.Errorf("describing model: dimension %d, the weights have %d", d.Dimension, len(v))
	}
	d.Dimension, d.SymbolPrefix = len(v), ""
	*d = d.WithID(e.network.digest)
	return nil
}

// Description implements models.Embedder.
func (e *Encoder) Description() models.Description { return e.description }

// Tokenizer implements models.Embedder. Counts are additive if the model's tokenizer is
// BERT's; those of other tokenizers may not be.
func (e *Encoder) Tokenizer() (models.Tokenizer, error) { return counter{e}, nil }

type counter struct{ e *Encoder }

func (c counter) Count(text string) int { return c.e.network.pieces.Count(text) }

func (c counter) Encode(text string) []int32 {
	return c.e.network.pieces.AppendIDs(nil, text, c.e.description.MaxTokens)
}

// EmbedDocuments implements models.Embedder. A cancelled ctx takes effect
// between two texts.
func (e *Encoder) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, err := e.embed(e.description.DocumentPrefix + text)
		if err != nil {
			return nil, fmt.Errorf("embedding text %d of %d: %w", i+1, len(texts), err)
		}
		vectors[i] = v
	}
	return vectors, nil
}

// EmbedQuery implements models.Embedder.
func (e *Encoder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v, err := e.embed(e.description.QueryPrefix + text)
	if err != nil {
		return nil, fmt.Errorf("embedding query: %w", err)
	}
	return v, nil
}

// Close implements models.Embedder. The encoder must not be used afterwards.
func (e *Encoder) Close() error { return e.network.close() }

func (e *Encoder) embed(text string) ([]float32, error) {
	ids := counter{e}.Encode(text)
	output, err := e.network.run(ids, len(ids))
	if err != nil {
		return nil, err
	}
	switch output := output.(type) {
	case [][]float32: // pooled by the model
		if len(output) == 1 {
			return unit(output[0])
		}
	case [][][]float32:
		if len(output) == 1 && len(output[0]) > 0 {
			return unit(pool(output[0], e.description.Pooling))
		}
	}
	return nil, fmt.Errorf("the model's first output is %T, want a vector or a sequence of vectors", output)
}

// pool returns the first vector, or the sum, which has the direction of the mean.
func pool(tokens [][]float32, pooling string) []float32 {
	if pooling == "cls" {
		return tokens[0]
	}
	sum := make([]float32, len(tokens[0]))
	for _, token := range tokens {
		for i, x := range token {
			sum[i] += x
		}
	}
	return sum
}

// unit scales v to length 1.
func unit(v []float32) ([]float32, error) {
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	if !(square > 0) || math.IsInf(square, 0) {
		return nil, fmt.Errorf("the model gave a vector of length %v", math.Sqrt(square))
	}
	scale := 1 / math.Sqrt(square)
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(float64(x) * scale)
	}
	return out, nil
}
