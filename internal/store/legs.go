package store

import (
	"context"

	"cairn/internal/query"
)

// LegSearcher is a store that holds the words and the vectors of the same chunks
// and searches both in one call.
type LegSearcher interface {
	// SearchLegs returns what Keyword.Search and Vectors.Search would, and
	// Vectors.Scores of the keyword hits.
	SearchLegs(ctx context.Context, q LegsQuery) (LegHits, error)
}

// LegsQuery asks for both legs of a search.
type LegsQuery struct {
	// Query is as in Keyword.Search. The nearest chunks observe its phrases and
	// exclusions too.
	Query query.Query
	// Keyword asks for the keyword leg.
	Keyword bool
	// Vector is the query as a unit vector.
	Vector []float32
	// K is the most hits of each leg.
	K      int
	Filter Filter
}

// LegHits are the hits of both legs, each best first.
type LegHits struct {
	Keyword, Nearest []Hit
	// Cosines are those of the keyword hits, NaN for a chunk without a vector.
	Cosines []float64
}
