package store

import (
	"context"

	"cairn/internal/text/query"
)

// LegSearcher searches the words and the vectors of chunks in one call.
type LegSearcher interface {
	// SearchLegs returns the results of Keyword.Search and Vectors.Search, and
	// Vectors.Scores of the keyword hits.
	SearchLegs(ctx context.Context, q LegsQuery) (LegHits, error)
}

// LegsQuery is a query for both legs of a search.
type LegsQuery struct {
	// Query is as in Keyword.Search. Its phrases and exclusions also apply to the
	// vector leg.
	Query query.Query
	// Keyword selects the keyword leg.
	Keyword bool
	// Vector is the unit vector of the query.
	Vector []float32
	// K is the maximum number of hits of each leg.
	K      int
	Filter Filter
	// Symbol, if not empty, is the name of a symbol. Its definitions are among the hits of
	// the vector leg, whatever their rank.
	Symbol string
}

// LegHits holds the hits of both legs, each best first.
type LegHits struct {
	Keyword, Nearest []Hit
	// Cosines holds the cosines of the keyword hits, NaN for a chunk without a vector.
	Cosines []float64
}
