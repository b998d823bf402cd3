package workspace

import (
	"context"
	"sync"

	"cairn/models"
)

// lazyModel is an embedder that is opened when it is first used. Its
// description is known before. A model that cannot be opened fails every use
// with the same error.
type lazyModel struct {
	description models.Description
	load        func() (models.Embedder, error)

	mu     sync.Mutex
	loaded bool
	model  models.Embedder
	err    error
}

func newLazyModel(d models.Description, open func() (models.Embedder, error)) *lazyModel {
	return &lazyModel{description: d, load: open}
}

// open returns the model itself.
func (l *lazyModel) open() (models.Embedder, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.loaded {
		l.model, l.err = l.load()
		l.loaded = true
	}
	return l.model, l.err
}

func (l *lazyModel) Description() models.Description { return l.description }

func (l *lazyModel) EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error) {
	m, err := l.open()
	if err != nil {
		return nil, err
	}
	return m.EmbedDocuments(ctx, texts)
}

func (l *lazyModel) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	m, err := l.open()
	if err != nil {
		return nil, err
	}
	return m.EmbedQuery(ctx, text)
}

// Kernel names the code that runs the model, where its engine tells; "" before
// it is opened.
func (l *lazyModel) Kernel() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k, ok := l.model.(interface{ Kernel() string }); ok {
		return k.Kernel()
	}
	return ""
}

// Tokenizer counts nothing when the model cannot be opened; whoever needs
// counts calls open first.
func (l *lazyModel) Tokenizer() models.Tokenizer {
	m, err := l.open()
	if err != nil {
		return noTokens{}
	}
	return m.Tokenizer()
}

type noTokens struct{}

func (noTokens) Count(string) int      { return 0 }
func (noTokens) Encode(string) []int32 { return nil }

// Close closes the model if it was opened. It waits for an opening that is
// going on.
func (l *lazyModel) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.model
	l.loaded, l.model, l.err = true, nil, errGone
	if m == nil {
		return nil
	}
	return m.Close()
}
