package toolsearch

import (
	"context"
	"errors"

	"cairn/models"
)

// failing is an embedder that cannot embed queries.
type failing struct{ models.Embedder }

func (failing) EmbedQuery(context.Context, string) ([]float32, error) {
	return nil, errors.New("out of order")
}
