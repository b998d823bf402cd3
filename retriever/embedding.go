package retriever

import (
	"context"
	"fmt"

	"cairn/internal/base/observe"
)

// queryVector returns the vector of text, or nil if the retriever has no vector leg.
// The vector is shared; the caller must not modify it.
func (r *Retriever) queryVector(ctx context.Context, text string) ([]float32, error) {
	if r.sources.Vectors == nil || r.sources.Embedder == nil {
		return nil, nil
	}
	v, ok := r.queries.Get(text)
	observe.Cached(ctx, ok)
	if ok {
		return v, nil
	}
	defer observe.Begin(ctx, observe.Embed).End(ctx)
	v, err := r.sources.Embedder.EmbedQuery(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("embedding the query: %w", err)
	}
	r.queries.Add(text, v)
	return v, nil
}
