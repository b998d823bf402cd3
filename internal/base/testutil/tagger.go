package testutil

import (
	"context"
	"sync"

	"cairn/models"
	"cairn/models/minilm"
)

// Tagger opens the built-in model that reads requests, once for all tests of a package. It tags
// words, but has no logits, so that a test's own embedder decides on tools.
var Tagger = sync.OnceValues(func() (models.Reader, error) {
	r, err := minilm.OpenReader(nil)
	return tagger{r}, err
})

type tagger struct{ models.Reader }

func (tagger) Rerank(context.Context, string, []string) ([]float64, error) { return nil, nil }
