package models

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is the error of a Lazy that was closed.
var ErrClosed = errors.New("the model is closed")

// Lazy is an Embedder that opens its model at the first use. Its description is
// available earlier. If the model cannot be opened, every use returns the same error. A
// Lazy is safe for concurrent use.
type Lazy struct {
	// Tokenize, if not nil, returns the tokenizer of the model without opening the model.
	Tokenize func() (Tokenizer, error)

	description Description

	mu    sync.Mutex
	load  func() (Embedder, error) // nil after the first use
	model Embedder
	err   error
}

// NewLazy returns an embedder with description d that calls load to open its model, at
// most once.
func NewLazy(d Description, load func() (Embedder, error)) *Lazy {
	return &Lazy{description: d, load: load}
}

// Open opens the model if it is not open, and returns it.
func (l *Lazy) Open() (Embedder, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.load != nil {
		l.model, l.err = l.load()
		l.load = nil
	}
	return l.model, l.err
}

// Description implements Embedder.
func (l *Lazy) Description() Description { return l.description }

// EmbedDocuments implements Embedder.
func (l *Lazy) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	m, err := l.Open()
	if err != nil {
		return nil, err
	}
	return m.EmbedDocuments(ctx, texts)
}

// EmbedQuery implements Embedder.
func (l *Lazy) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	m, err := l.Open()
	if err != nil {
		return nil, err
	}
	return m.EmbedQuery(ctx, text)
}

// Kernel returns the name of the engine's kernel, or "" if the model is not open or the
// engine does not report one.
func (l *Lazy) Kernel() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k, ok := l.model.(interface{ Kernel() string }); ok {
		return k.Kernel()
	}
	return ""
}

// Tokenizer implements Embedder.
func (l *Lazy) Tokenizer() (Tokenizer, error) {
	if l.Tokenize != nil {
		return l.Tokenize()
	}
	m, err := l.Open()
	if err != nil {
		return nil, err
	}
	return m.Tokenizer()
}

// Close closes the model if it was opened. It waits for an Open in progress.
func (l *Lazy) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.model
	l.load, l.model, l.err = nil, nil, ErrClosed
	if m == nil {
		return nil
	}
	return m.Close()
}
