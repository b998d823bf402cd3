package store

import (
	"context"

	"cairn/internal/text/query"
)

// LegSearcher searches the words and the vectors of chunks together.
type LegSearcher interface {
	// SearchLegs returns the results of KeywordSearcher.Search and VectorSearcher.Search,
	// and VectorSearcher.Scores of the keyword hits.
	SearchLegs(ctx context.Context, q LegsQuery) (LegHits, error)
}

// LegsQuery is a query for both legs of a search.
type LegsQuery struct {
	// Query is as in Keyword.Search. Its phrases and exclusions also apply to the
	// vector leg.
	Query query.Query
	// Vector is the unit vector of the query.
	Vector []float32
	// Words and Nearest are the largest numbers of hits of the keyword and the vector leg.
	Words, Nearest int
	Filter         Filter
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
