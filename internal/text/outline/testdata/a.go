package index

import "context"

// Limits of an index.
const (
	MinSize = 1
	MaxSize = 2
)

// Index holds documents.
type Index struct{ n int }

// Search finds documents.
func (x *Index) Search(ctx context.Context,
	text string) ([]string, error) {
	_ = func() int { return x.n }
	return nil, nil
}

func Open[T any](path string) *Index { return nil }
